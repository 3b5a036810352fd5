package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Plan;
import org.millrace.ReduceOp;

/** Operations of several communicators that one thread enqueues as one group. */
class CommunicatorsInOneGroupTest extends EngineFixture {

    /** Number of elements. The elements do not fit into the slots of a connection. */
    private static final long COUNT = 1 << 16;

    /** Two communicators of a rank, with their operands. The communicators have one common stream or a stream each. */
    private record Pair(Communicator there, Communicator back, DeviceStream thereOn, DeviceStream backOn,
            MemorySegment sent, MemorySegment received) {

        private int rank() {
            return there.rank();
        }

        private long sentValue(int rank) {
            return 100 + rank;
        }

        private void fill() {
            thereOn.call(() -> {
                for (long i = 0; i < COUNT; i++) {
                    sent.setAtIndex(ValueLayout.JAVA_LONG, i, sentValue(rank()) * i);
                }
                received.fill((byte) -1);
            });
        }

        private void check() {
            thereOn.synchronize(TIMEOUT);
            backOn.synchronize(TIMEOUT);
            for (long i = 0; i < COUNT; i++) {
                assertEquals(sentValue(1 - rank()) * i, received.getAtIndex(ValueLayout.JAVA_LONG, i), "element " + i);
            }
        }

        /**
         * Exchanges data. Rank 0 sends on one communicator, and rank 1 sends on the other communicator. Each rank calls
         * its sends before its receives.
         */
        private void exchange(long pieces) {
            Communicator out = rank() == 0 ? there : back;
            Communicator in = rank() == 0 ? back : there;
            long bytes = COUNT * Long.BYTES / pieces;
            for (long i = 0; i < pieces; i++) {
                out.send(sent.asSlice(i * bytes, bytes), COUNT / pieces, DataType.INT64, 1 - rank(),
                        out == there ? thereOn : backOn);
            }
            for (long i = 0; i < pieces; i++) {
                in.receive(received.asSlice(i * bytes, bytes), COUNT / pieces, DataType.INT64, 1 - rank(),
                        in == there ? thereOn : backOn);
            }
        }
    }

    private interface Body {
        void run(Pair pair) throws Exception;
    }

    private void pairs(Map<String, String> settings, boolean oneStream, Body body) throws Exception {
        EngineGroup.ranks(directory, 2, settings, there -> {
            try (Communicator back = there.split(0, 0).orElseThrow();
                    Arena arena = Arena.ofShared();
                    DeviceStream first = there.device().newStream();
                    DeviceStream second = there.device().newStream()) {
                body.run(new Pair(there, back, first, oneStream ? first : second,
                        there.device().allocate(COUNT * Long.BYTES, arena),
                        there.device().allocate(COUNT * Long.BYTES, arena)));
            }
        });
    }

    /**
     * Both operations of a rank must run at the same time. In sequence, each rank's send would wait for the peer's
     * receive, which is queued behind the peer's own send.
     */
    @ParameterizedTest
    @ValueSource(strings = {"1", "2"})
    void aSendOnOneAndAReceiveOnTheOtherGoOnAtTheSameTimeOnOneStream(String threads) throws Exception {
        pairs(EngineGroup.settings("NCCL_BUFFSIZE", "64K", "MILLRACE_THREADS", threads), true, pair -> {
            for (int i = 0; i < 5; i++) {
                pair.fill();
                Millrace.group(() -> pair.exchange(1));
                pair.check();
            }
        });
    }

    /**
     * Kernels fill the work FIFO of one communicator. They end only when kernels of the other communicator run. The
     * launch on the other communicator must therefore not wait for room in the full FIFO.
     */
    @ParameterizedTest
    @CsvSource({"true", "false"})
    void aFullFifoOfOneDoesNotKeepTheOthersFromLaunching(boolean oneStream) throws Exception {
        pairs(EngineGroup.settings("NCCL_BUFFSIZE", "64K", "NCCL_WORK_ARGS_BYTES", "0", "NCCL_WORK_FIFO_BYTES", "1K"),
                oneStream, pair -> {
                    for (int i = 0; i < 3; i++) {
                        pair.fill();
                        Millrace.group(() -> pair.exchange(64));
                        pair.check();
                    }
                });
    }

    @Test
    void aStreamWaitsForTheOperationsThatNameItAndTheyForWhatItHeld() throws Exception {
        pairs(EngineGroup.settings(), true, pair -> {
            long[] seen = new long[2];
            for (long i = 1; i <= 50; i++) {
                long number = i;
                pair.thereOn.call(() -> {
                    pair.sent.set(ValueLayout.JAVA_LONG, 0, number);
                    pair.received.set(ValueLayout.JAVA_LONG, 0, 10 * number);
                });
                Millrace.group(() -> {
                    pair.there.allReduce(pair.sent, pair.sent, 1, DataType.INT64, ReduceOp.SUM, pair.thereOn);
                    pair.back.allReduce(pair.received, pair.received, 1, DataType.INT64, ReduceOp.SUM, pair.thereOn);
                });
                pair.thereOn.call(() -> {
                    seen[0] += pair.sent.get(ValueLayout.JAVA_LONG, 0);
                    seen[1] += pair.received.get(ValueLayout.JAVA_LONG, 0);
                });
            }
            pair.thereOn.synchronize(TIMEOUT);
            assertEquals(List.of(50L * 51, 10 * 50L * 51), List.of(seen[0], seen[1]));
        });
    }

    @Test
    void oneThreadEnqueuesForAllRanks() throws Exception {
        Communicator[] ranks = new Communicator[3];
        EngineGroup.call(3, rank -> () -> {
            ranks[rank] = EngineGroup.join(directory, rank, 3, EngineGroup.settings());
            return null;
        }).forEach(failure -> assertNull(failure));
        try (Arena arena = Arena.ofShared()) {
            MemorySegment all = arena.allocate(3 * Long.BYTES, Long.BYTES);
            List<DeviceStream> streams = List.of(ranks[0].device().newStream(), ranks[1].device().newStream(),
                    ranks[2].device().newStream());
            Millrace.group(() -> {
                for (int rank = 0; rank < 3; rank++) {
                    MemorySegment own = all.asSlice(rank * 8L, 8);
                    own.set(ValueLayout.JAVA_LONG, 0, 1L << rank);
                    ranks[rank].allReduce(own, own, 1, DataType.INT64, ReduceOp.SUM, streams.get(rank));
                }
            });
            streams.forEach(stream -> stream.synchronize(TIMEOUT));
            assertEquals(List.of(7L, 7L, 7L), List.of(all.getAtIndex(ValueLayout.JAVA_LONG, 0),
                    all.getAtIndex(ValueLayout.JAVA_LONG, 1), all.getAtIndex(ValueLayout.JAVA_LONG, 2)));
            streams.forEach(DeviceStream::close);
        }
        EngineGroup.call(3, rank -> () -> {
            ranks[rank].close();
            return null;
        }).forEach(failure -> assertNull(failure));
    }

    @Test
    void onlyTheOutermostGroupLaunches() throws Exception {
        pairs(EngineGroup.settings(), true, pair -> {
            pair.fill();
            pair.thereOn.synchronize(TIMEOUT);
            Millrace.group(() -> {
                pair.there.group(() -> Millrace.group(() -> pair.exchange(1)));
                assertTrue(pair.thereOn.query(), "something was launched");
                assertEquals(-1, pair.received.get(ValueLayout.JAVA_LONG, 0));
            });
            pair.check();
            pair.fill();
            pair.there.group(() -> pair.exchange(2)); // a group includes operations of all communicators
            pair.check();
        });
    }

    @Test
    void whatFailsDoesNotKeepTheOthersFromLaunching() throws Exception {
        pairs(EngineGroup.settings(), true, pair -> {
            pair.fill();
            IllegalCallerException own = assertThrows(IllegalCallerException.class, () -> Millrace.group(() -> {
                pair.exchange(1);
                throw new IllegalCallerException("the test's");
            }));
            assertEquals("the test's", own.getMessage());
            pair.check();

            Communicator lost = pair.there.split(0, 0).orElseThrow();
            MemorySegment word = pair.sent.asSlice(0, 8);
            pair.fill();
            MillraceException closed = assertThrows(MillraceException.class, () -> Millrace.group(() -> {
                pair.exchange(1);
                try {
                    lost.allReduce(word, word, 1, DataType.INT64, ReduceOp.SUM, pair.thereOn);
                } finally {
                    lost.abort();
                }
            }));
            // the other rank may have aborted before this rank enqueued its operations
            String why = closed.getMessage();
            assertTrue(why.contains("the communicator is closed") || why.contains("aborted the communicator"), why);
            pair.check();

            IllegalArgumentException half = assertThrows(IllegalArgumentException.class, () -> Millrace.group(() -> {
                pair.there.send(word, 1, DataType.INT64, pair.rank(), pair.thereOn);
                pair.exchange(1);
            }));
            assertTrue(half.getMessage().contains("call send and receive in one group"), half.getMessage());
            pair.check();
        });
    }

    @Test
    void aPlanIsNoPartOfAGroup() throws Exception {
        pairs(EngineGroup.settings(), true, pair -> {
            MemorySegment word = pair.sent.asSlice(0, 8);
            Runnable operation = () -> pair.there.allReduce(word, word, 1, DataType.INT64, ReduceOp.SUM, pair.thereOn);
            assertThrows(IllegalStateException.class,
                    () -> Millrace.group(() -> pair.there.plan(pair.thereOn, operation)));
            try (Plan plan = pair.there.plan(pair.thereOn, () -> Millrace.group(operation))) {
                assertThrows(IllegalStateException.class, () -> Millrace.group(() -> plan.launch(pair.thereOn)));
                word.set(ValueLayout.JAVA_LONG, 0, 21);
                plan.launch(pair.thereOn);
                pair.thereOn.synchronize(TIMEOUT);
                assertEquals(42, word.get(ValueLayout.JAVA_LONG, 0));
            }
        });
    }

    /**
     * Two threads take turns on one communicator. While the group of one thread is open, the other thread's operation
     * runs, and the group's operation does not run yet.
     */
    @ParameterizedTest
    @ValueSource(strings = {"allReduce", "allToAll", "self", "group", "captured", "plan"})
    void anotherThreadLaunchesOnlyItsOwnOperations(String operation) throws Exception {
        pairs(EngineGroup.settings("MILLRACE_LATE_DEADLINE", "20s"), false, pair -> {
            MemorySegment grouped = pair.sent.asSlice(0, 8);
            MemorySegment other = pair.sent.asSlice(8, 16);
            MemorySegment result = pair.received.asSlice(0, 16);
            grouped.set(ValueLayout.JAVA_LONG, 0, 1);
            other.setAtIndex(ValueLayout.JAVA_LONG, 0, 1);
            other.setAtIndex(ValueLayout.JAVA_LONG, 1, 1);
            Communicator communicator = pair.there;
            DeviceStream stream = pair.backOn;
            Runnable sum = () -> communicator.allReduce(other, result, 1, DataType.INT64, ReduceOp.SUM, stream);
            Runnable turn = () -> {
                switch (operation) {
                    case "allReduce" -> sum.run();
                    case "allToAll" -> communicator.allToAll(other, result, 1, DataType.INT64, stream);
                    case "self" -> Millrace.group(() -> {
                        communicator.send(other, 1, DataType.INT64, pair.rank(), stream);
                        communicator.receive(result, 1, DataType.INT64, pair.rank(), stream);
                    });
                    case "group" -> Millrace.group(sum);
                    case "captured" -> {
                        stream.beginCapture();
                        sum.run();
                        launch(stream.endCapture(), stream);
                    }
                    default -> launch(communicator.plan(stream, sum), stream);
                }
                stream.synchronize(TIMEOUT);
            };
            Millrace.group(() -> {
                communicator.allReduce(grouped, grouped, 1, DataType.INT64, ReduceOp.SUM, pair.thereOn);
                CompletableFuture.runAsync(turn, task -> Thread.ofPlatform().start(task)).join();
                pair.thereOn.synchronize(TIMEOUT);
                assertEquals(1, grouped.get(ValueLayout.JAVA_LONG, 0), "the other thread launched this operation");
            });
            pair.thereOn.synchronize(TIMEOUT);
            assertEquals(2, grouped.get(ValueLayout.JAVA_LONG, 0));
            assertEquals(Set.of("allToAll", "self").contains(operation) ? 1 : 2, result.get(ValueLayout.JAVA_LONG, 0));
        });
    }

    /** Two threads enqueue their operations in turn, but may end their groups at the same time. */
    @Test
    void groupsOfTwoThreadsEndAtTheSameTime() throws Exception {
        EngineGroup.ranks(directory, 1, EngineGroup.settings(), communicator -> {
            Lock turn = new ReentrantLock();
            Runnable groups = () -> {
                try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                    MemorySegment sent = communicator.device().allocate(8, arena);
                    MemorySegment received = communicator.device().allocate(8, arena);
                    for (long i = 1; i <= 1000; i++) {
                        sent.set(ValueLayout.JAVA_LONG, 0, i);
                        Millrace.group(() -> {
                            turn.lock();
                            try {
                                communicator.send(sent, 1, DataType.INT64, 0, stream);
                                communicator.receive(received, 1, DataType.INT64, 0, stream);
                            } finally {
                                turn.unlock();
                            }
                        });
                        stream.synchronize(TIMEOUT);
                        assertEquals(i, received.get(ValueLayout.JAVA_LONG, 0));
                    }
                }
            };
            CompletableFuture<Void> other = CompletableFuture.runAsync(groups, task -> Thread.ofPlatform().start(task));
            groups.run();
            other.join();
        });
    }

    private static void launch(Plan recorded, DeviceStream stream) {
        try (Plan plan = recorded) {
            plan.launch(stream);
            stream.synchronize(TIMEOUT);
        }
    }
}
