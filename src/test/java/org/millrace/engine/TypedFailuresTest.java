package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.CommunicatorException;
import org.millrace.CommunicatorListener;
import org.millrace.DataType;
import org.millrace.DeadlineException;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.PeerLostException;
import org.millrace.ReduceOp;

/**
 * A program can distinguish failures by exception type, rank, peer and operation. Some events must not count as
 * failures.
 */
class TypedFailuresTest extends EngineFixture {

    private static void allReduce(Communicator communicator, long count, ReduceOp op, boolean waits) {
        try (DeviceStream stream = communicator.device().newStream()) {
            MemorySegment data = communicator.device().allocate(8 * count, Arena.ofAuto());
            communicator.allReduce(data, data, count, DataType.INT64, op, stream);
            if (waits) {
                stream.synchronize(TIMEOUT);
            }
        }
    }

    private static <T extends CommunicatorException> T assertFailure(Class<T> type, int rank, int peer,
            Throwable thrown) {
        T failure = assertInstanceOf(type, thrown);
        assertEquals(rank, failure.rank(), failure.getMessage());
        assertEquals(peer < 0 ? OptionalInt.empty() : OptionalInt.of(peer), failure.peer(), failure.getMessage());
        assertFalse(failure.getCause() instanceof MillraceException, "it is said twice: " + failure.getCause());
        assertFalse(failure.getMessage().matches("(?s).*\\b(head|tail|sizes) .*"), failure.getMessage());
        return failure;
    }

    @Test
    void aLostConnection() throws Exception {
        Map<String, String> settings = EngineGroup.settings("NCCL_BUFFSIZE", "32K", "MILLRACE_NET", "socket");
        Map<String, String> faulty = new HashMap<>(settings);
        faulty.put("MILLRACE_FAULT", "cut:frame=3");
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            try (Communicator communicator = EngineGroup.join(directory, rank, 2, rank == 0 ? faulty : settings)) {
                allReduce(communicator, 1 << 18, ReduceOp.SUM, true);
            }
            return null;
        });
        for (int rank = 0; rank < 2; rank++) {
            PeerLostException lost = assertFailure(PeerLostException.class, rank, 1 - rank, thrown.get(rank));
            assertTrue(lost.operation().orElseThrow().contains("all_reduce of 262144 int64"), lost.toString());
        }
    }

    @Test
    void ranksThatCallDifferentOperations() throws Exception {
        List<Throwable> thrown =
                EngineGroup.thrown(directory, 2, EngineGroup.settings(), communicator -> allReduce(communicator, 100,
                        communicator.rank() == 0 ? ReduceOp.SUM : ReduceOp.MAX, true));
        for (int rank = 0; rank < 2; rank++) {
            assertFailure(MismatchException.class, rank, 1 - rank, thrown.get(rank));
        }
    }

    /**
     * Each rank waits for the other. Neither rank is late, and the check reports both ranks before any deadline passes.
     */
    @Test
    void ranksThatWaitForEachOther() throws Exception {
        Map<String, String> settings = EngineGroup.settings("MILLRACE_STALL_DEADLINE", "300ms");
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings, communicator -> {
            if (communicator.rank() == 0) {
                allReduce(communicator, 100, ReduceOp.SUM, true);
            } else {
                try (DeviceStream stream = communicator.device().newStream()) {
                    communicator.receive(communicator.device().allocate(8, Arena.ofAuto()), 1, DataType.INT64, 0,
                            stream);
                    stream.synchronize(TIMEOUT);
                }
            }
        });
        for (int rank = 0; rank < 2; rank++) {
            MismatchException failure = assertFailure(MismatchException.class, rank, 1 - rank, thrown.get(rank));
            assertTrue(failure.getMessage().contains("the ranks wait for each other"), failure.getMessage());
            // A rank usually reports its own state. If its peer failed first, it reports the state of the peer instead.
            assertTrue(failure.getMessage().matches(".*State of rank ([01]): rank \\1 .*"), failure.getMessage());
            assertTrue(failure.getMessage().contains("receive of 1 int64 from rank 0")
                    || failure.getMessage().contains("all_reduce of 100 int64, sum"), failure.getMessage());
        }
    }

    @Test
    void settingsThatDiffer() throws Exception {
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            EngineGroup.join(directory, rank, 2, EngineGroup.settings("NCCL_BUFFSIZE", rank == 0 ? "1M" : "2M"))
                    .close();
            return null;
        });
        for (int rank = 0; rank < 2; rank++) {
            assertFailure(MismatchException.class, rank, 1 - rank, thrown.get(rank));
        }
    }

    @Test
    void anAbort() throws Exception {
        CountDownLatch called = new CountDownLatch(1);
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, EngineGroup.settings(), communicator -> {
            if (communicator.rank() == 0) {
                called.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
                communicator.abort();
            } else {
                try (DeviceStream stream = communicator.device().newStream()) {
                    MemorySegment data = communicator.device().allocate(8, Arena.ofAuto());
                    communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM, stream);
                    called.countDown();
                    stream.synchronize(TIMEOUT);
                }
            }
        });
        assertNull(thrown.get(0));
        AbortedException aborted = assertFailure(AbortedException.class, 1, 0, thrown.get(1));
        assertTrue(aborted.operation().orElseThrow().contains("all_reduce of 1 int64"), aborted.toString());
    }

    @Test
    void aRankThatDoesNotCome() throws Exception {
        DeadlineException late = assertThrows(DeadlineException.class,
                () -> EngineGroup.join(directory, 0, 2, EngineGroup.settings("MILLRACE_CONNECT_DEADLINE", "200ms")));
        assertFailure(DeadlineException.class, 0, 1, late);
    }

    @Test
    void aRankThatIsTooLate() throws Exception {
        CountDownLatch failed = new CountDownLatch(1);
        Map<String, String> settings =
                EngineGroup.settings("MILLRACE_STALL_DEADLINE", "100ms", "MILLRACE_LATE_DEADLINE", "300ms");
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings, communicator -> {
            if (communicator.rank() == 1) {
                failed.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
                return;
            }
            try {
                allReduce(communicator, 100, ReduceOp.SUM, true);
            } finally {
                failed.countDown();
            }
        });
        DeadlineException late = assertFailure(DeadlineException.class, 0, 1, thrown.get(0));
        assertTrue(late.getMessage().contains("MILLRACE_LATE_DEADLINE"), late.getMessage());
        assertTrue(late.operation().orElseThrow().contains("all_reduce of 100 int64, sum"), late.toString());
        assertNull(thrown.get(1));
    }

    /**
     * A rank is late by more than the limit for a stall, but no connection has failed. The program is notified once,
     * and the results are right.
     */
    @Test
    void aLateRankPoisonsNobody() throws Exception {
        CountDownLatch missed = new CountDownLatch(1);
        List<String> told = new CopyOnWriteArrayList<>();
        Map<String, String> settings = EngineGroup.settings("MILLRACE_STALL_DEADLINE", "2s");
        CommunicatorListener listener = new CommunicatorListener() {
            @Override
            public void stalled(String what) {
                told.add(what);
                missed.countDown();
            }
        };
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            try (Communicator communicator = EngineGroup.join(directory, rank, 2, settings, listener)) {
                if (rank == 1) {
                    assertTrue(missed.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS),
                            "rank 0 should have missed this rank");
                }
                allReduce(communicator, 100, ReduceOp.SUM, true);
                allReduce(communicator, 100, ReduceOp.SUM, true);
            }
            return null;
        });
        thrown.forEach(failure -> assertNull(failure));
        assertTrue(told.getFirst().contains("all_reduce of 100 int64, sum: rank 1 has not"), told.toString());
    }

    @Test
    void closingWhileAPeerIsLateEndsInTimeAndSaysWhatItGaveUp() throws Exception {
        CountDownLatch left = new CountDownLatch(1);
        Map<String, String> settings = EngineGroup.settings("MILLRACE_CLOSE_DEADLINE", "200ms");
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            Communicator communicator = EngineGroup.join(directory, rank, 2, settings);
            if (rank == 0) {
                MemorySegment data = communicator.device().allocate(8, Arena.ofAuto());
                communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM, communicator.device().newStream());
                DeadlineException givenUp = assertThrows(DeadlineException.class, communicator::close);
                assertTrue(givenUp.getMessage().contains("gives up 1 operation that has not completed within 200 ms"),
                        givenUp.getMessage());
                assertTrue(givenUp.getMessage().contains("all_reduce of 1 int64, sum"), givenUp.getMessage());
                left.countDown();
            } else {
                assertTrue(left.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
                // Rank 0 has sent its data, so this rank could still complete the operation. This rank therefore waits
                // until it has learned that rank 0 has failed.
                while (communicator.asyncError().isEmpty()) {
                    Thread.onSpinWait();
                }
                AbortedException told =
                        assertThrows(AbortedException.class, () -> allReduce(communicator, 1, ReduceOp.SUM, true));
                assertEquals(OptionalInt.of(0), told.peer(), told.getMessage());
                communicator.close();
            }
            return null;
        });
        thrown.forEach(failure -> assertNull(failure));
    }

    @Test
    void aStageCompletesWithTheOperationsOrWithTheirFailure() throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), communicator -> {
            try (DeviceStream stream = communicator.device().newStream(); Arena arena = Arena.ofShared()) {
                MemorySegment own = arena.allocate(ValueLayout.JAVA_LONG);
                own.set(ValueLayout.JAVA_LONG, 0, communicator.rank() + 1);
                MemorySegment data = communicator.device().view(own.address(), 8);
                communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM, stream);
                long sum = stream.completion()
                        .thenApply(_ -> own.get(ValueLayout.JAVA_LONG, 0))
                        .toCompletableFuture()
                        .get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
                assertEquals(3, sum);
                communicator.allReduce(data, data, 1, DataType.INT64,
                        communicator.rank() == 0 ? ReduceOp.SUM : ReduceOp.MAX, stream);
                ExecutionException failed = assertThrows(ExecutionException.class,
                        () -> stream.completion()
                                .toCompletableFuture()
                                .get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
                assertFailure(MismatchException.class, communicator.rank(), 1 - communicator.rank(), failed.getCause());
            }
        });
    }

    @Test
    void whatIsNullIsNamed() throws Exception {
        EngineGroup.ranks(directory, 1, EngineGroup.settings(), communicator -> {
            try (DeviceStream stream = communicator.device().newStream()) {
                MemorySegment data = communicator.device().allocate(8, Arena.ofAuto());
                named("receive: the segment is null",
                        () -> communicator.allReduce(data, null, 1, DataType.INT64, ReduceOp.SUM, stream));
                named("the type is null", () -> communicator.allReduce(data, data, 1, null, ReduceOp.SUM, stream));
                named("the argument op is null",
                        () -> communicator.allReduce(data, data, 1, DataType.INT64, null, stream));
                named("the stream is null",
                        () -> communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM, null));
            }
        });
        named("rendezvous is null", () -> org.millrace.Millrace.join(null, 0, 1));
    }

    private static void named(String what, Runnable call) {
        NullPointerException thrown = assertThrows(NullPointerException.class, call::run);
        assertTrue(thrown.getMessage().contains(what), thrown.getMessage());
    }
}
