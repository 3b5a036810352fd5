package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.LiveHeap;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.device.DeviceCommunicator;
import org.millrace.device.WorkFifo;

/** Operations with work that travels through the FIFO. */
@Timeout(EngineWorkTest.TIMEOUT_SECONDS)
@Tag("slow")
class EngineWorkTest extends EngineFixture {

    private static final int FIFO = 1024;
    static final long TIMEOUT_SECONDS = 180;

    /** Returns settings under which no item fits into a kernel's arguments. */
    private static Map<String, String> through(int fifoBytes, long first) {
        return EngineGroup.settings("NCCL_WORK_FIFO_BYTES", "" + fifoBytes, "NCCL_WORK_ARGS_BYTES", "0",
                "org.millrace.engine.firstWork", "" + first, "NCCL_BUFFSIZE", "32K");
    }

    private static DeviceCommunicator device(Communicator communicator) {
        return ((EngineCommunicator) communicator).deviceCommunicator();
    }

    private static MemorySegment words(Communicator communicator, Arena arena, long... values) {
        MemorySegment words = communicator.device().allocate(8L * values.length, arena);
        for (int i = 0; i < values.length; i++) {
            words.setAtIndex(ValueLayout.JAVA_LONG, i, values[i]);
        }
        return words;
    }

    private static void sum(Communicator communicator, MemorySegment words, DeviceStream stream) {
        communicator.allReduce(words, words, words.byteSize() / 8, DataType.INT64, ReduceOp.SUM, stream);
    }

    /**
     * Groups with more operations than a kernel accepts, including transfers with all peers. The FIFO is smaller than a
     * group.
     */
    @ParameterizedTest
    @ValueSource(longs = {0, 0x7fff_fff0L, 0xffff_ff00L})
    void groupsThatAreLargerThanTheFifo(long first) throws Exception {
        int ranks = 3;
        int operations = 20;
        int groups = 25;
        EngineGroup.ranks(directory, ranks, through(FIFO, first), communicator -> {
            try (Arena arena = Arena.ofShared();
                    DeviceStream one = communicator.device().newStream();
                    DeviceStream other = communicator.device().newStream()) {
                int rank = communicator.rank();
                for (int group = 0; group < groups; group++) {
                    MemorySegment[] sums = new MemorySegment[operations];
                    MemorySegment[] received = new MemorySegment[operations * ranks];
                    communicator.group(() -> {
                        for (int i = 0; i < operations; i++) {
                            sums[i] = words(communicator, arena, rank, i);
                            sum(communicator, sums[i], i % 5 == 4 ? other : one);
                            for (int peer = 0; peer < ranks; peer++) {
                                received[i * ranks + peer] = words(communicator, arena, -1);
                                // both ends of a rank's send to itself must be on one stream
                                DeviceStream on = i % 3 == 2 ? other : one;
                                communicator.send(words(communicator, arena, 100 * rank + 10 * peer + i), 1,
                                        DataType.INT64, peer, on);
                                communicator.receive(received[i * ranks + peer], 1, DataType.INT64, peer, on);
                            }
                        }
                    });
                    one.synchronize(TIMEOUT);
                    other.synchronize(TIMEOUT);
                    for (int i = 0; i < operations; i++) {
                        assertEquals(3, sums[i].get(ValueLayout.JAVA_LONG, 0));
                        assertEquals(3L * i, sums[i].get(ValueLayout.JAVA_LONG, 8));
                        for (int peer = 0; peer < ranks; peer++) {
                            assertEquals(100 * peer + 10 * rank + i,
                                    received[i * ranks + peer].get(ValueLayout.JAVA_LONG, 0));
                        }
                    }
                }
                int travelled = device(communicator).fifo().produced() - (int) first;
                assertTrue(travelled > 20 * FIFO, "only " + travelled + " bytes went through the FIFO");
            }
        });
    }

    @Test
    void anAbortWhileTheFifoIsFull() throws Exception {
        CountDownLatch ended = new CountDownLatch(1);
        EngineGroup.ranks(directory, 2, through(FIFO, 0xffff_fe00L), communicator -> {
            if (communicator.rank() == 1) {
                assertTrue(ended.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
                return;
            }
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                MemorySegment data = words(communicator, arena, 1);
                AtomicReference<Throwable> told = new AtomicReference<>();
                Thread caller = Thread.ofPlatform().name("test-caller").start(() -> {
                    try {
                        while (true) {
                            sum(communicator, data, stream);
                        }
                    } catch (MillraceException e) {
                        told.set(e);
                    }
                });
                WorkFifo fifo = device(communicator).fifo();
                long deadline = System.nanoTime() + TIMEOUT.toNanos();
                while (!waitsForRoom(caller) && System.nanoTime() < deadline) {
                    Thread.onSpinWait();
                }
                assertFalse(fifo.hasRoom(CollectiveWork.BYTES), "the FIFO is not full: " + fifo);
                communicator.abort();
                caller.join(TIMEOUT);
                assertNotNull(told.get(), "the caller still waits");
                assertTrue(
                        told.get().getMessage().contains("while it waited for room in the work FIFO")
                                && told.get().getMessage().contains("rank 0 aborted the communicator"),
                        told.get().getMessage());
                assertEquals(0, fifo.used(), "left in the FIFO");
            } finally {
                ended.countDown();
            }
        });
    }

    /**
     * Returns whether a thread idles because the FIFO had no room for its plan. The FIFO is already full before the
     * thread requests room, because the plan before fills it.
     */
    private static boolean waitsForRoom(Thread caller) {
        StackTraceElement[] stack = caller.getStackTrace();
        return Arrays.stream(stack).anyMatch(frame -> frame.getMethodName().equals("idle")) && Arrays.stream(stack)
                .filter(frame -> frame.getClassName().equals(PlanLauncher.class.getName()))
                .map(StackTraceElement::getMethodName)
                .toList()
                .equals(List.of("launch"));
    }

    /**
     * A stream may be closed after its communicator. After the communicator is closed, calls that wait report that the
     * device has stopped. The test runs with one and with two polling threads.
     */
    @ParameterizedTest
    @ValueSource(strings = {"1", "2"})
    void aStreamOutlivesItsCommunicator(String threads) {
        Communicator communicator =
                EngineGroup.join(directory, 0, 1, EngineGroup.settings("MILLRACE_THREADS", threads));
        try (DeviceStream stream = communicator.device().newStream()) {
            Event event = communicator.device().newEvent();
            communicator.close();
            stream.record(event);
            for (MillraceException told : List.of(
                    assertThrows(MillraceException.class, () -> stream.synchronize(Duration.ZERO)),
                    assertThrows(MillraceException.class, () -> event.synchronize(Duration.ZERO)))) {
                assertTrue(told.getMessage().contains("the device has stopped"), told.getMessage());
            }
        }
    }

    @Test
    void theHostSeesWhatAKernelHasBegun() throws Exception {
        CountDownLatch seen = new CountDownLatch(1);
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), communicator -> {
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                MemorySegment data = words(communicator, arena, 1);
                DeviceCommunicator device = device(communicator);
                if (communicator.rank() == 1) {
                    assertTrue(seen.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
                }
                sum(communicator, data, stream);
                if (communicator.rank() == 0) {
                    long deadline = System.nanoTime() + TIMEOUT.toNanos();
                    while (device.started(0, 1) < 0 && System.nanoTime() < deadline) {
                        Thread.onSpinWait();
                    }
                    assertTrue(device.started(0, 1) > 0, "the kernel has not begun");
                    assertEquals(-1, device.completed(0, 1), "complete without the other rank");
                    seen.countDown();
                }
                stream.synchronize(TIMEOUT);
                assertTrue(device.completed(0, 1) >= device.started(0, 1));
                assertEquals(-1, device.started(0, 2));
            } finally {
                seen.countDown();
            }
        });
    }

    /**
     * {@code -Dmillrace.test.operations=1000000} sets the number of operations. The default is small enough for a
     * build.
     */
    @Test
    void manySmallOperationsLeaveNothing() throws Exception {
        int operations = Integer.getInteger("millrace.test.operations", 100_000);
        // on a machine with ten times as many threads as cores, the loop takes more than a minute
        List<Throwable> thrown = EngineGroup.call(2, TIMEOUT_SECONDS - 10, rank -> () -> {
            try (Communicator communicator = EngineGroup.join(directory, rank, 2, through(4096, 0xffff_0000L));
                    Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream()) {
                MemorySegment data = words(communicator, arena, 1);
                long before = 0;
                for (int i = 0; i < operations; i++) {
                    communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.MAX, stream);
                    if (i == operations / 10) {
                        stream.synchronize(TIMEOUT);
                        before = LiveHeap.bytes();
                    }
                }
                stream.synchronize(TIMEOUT);
                LiveHeap.assertGrowsByLessThan(8 << 20, before);
                assertEquals(1, data.get(ValueLayout.JAVA_LONG, 0));
                assertTrue(device(communicator).completed(0, operations) > 0, "the last operation was not seen");
            }
            return null;
        });
        thrown.forEach(failure -> assertNull(failure));
    }

    @Test
    void aFunctionThatAStreamCallsCannotLaunch() throws Exception {
        List<Throwable> thrown =
                EngineGroup.thrown(directory, 1, EngineGroup.settings(), (communicator, stream, arena) -> {
                    MemorySegment data = words(communicator, arena, 1);
                    AtomicReference<Throwable> told = new AtomicReference<>();
                    stream.call(() -> told
                            .set(assertThrows(MillraceException.class, () -> sum(communicator, data, stream))));
                    stream.synchronize(TIMEOUT);
                    assertTrue(told.get().getMessage().contains("cannot be enqueued by a function that a stream calls"),
                            told.get().getMessage());
                    sum(communicator, data, stream);
                    stream.synchronize(TIMEOUT);
                });
        assertNull(thrown.getFirst());
    }
}
