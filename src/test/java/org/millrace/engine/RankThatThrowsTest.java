package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeadlineException;
import org.millrace.DeviceStream;
import org.millrace.JoinBuilder;
import org.millrace.Millrace;
import org.millrace.ReduceOp;

/**
 * If the program of one rank throws, the programs of all other ranks end too. The other ranks report the exception and
 * the rank that threw it. The time limit of each test is well below the limits of {@code close()}
 * (MILLRACE_CLOSE_DEADLINE, 60 s) and of a stalled operation.
 */
@Timeout(30)
class RankThatThrowsTest extends EngineFixture {

    private static final int THROWS = 1;

    /** Moment at which the program of one rank throws. */
    enum Moment {
        BEFORE, INSIDE, BETWEEN
    }

    private JoinBuilder builder(int rank, int size, String network) {
        return Millrace.builder()
                .rendezvous("file:" + directory.resolve("group"))
                .rank(rank)
                .size(size)
                .device("host")
                .network(network);
    }

    /**
     * Runs operations until one fails. One rank throws at the given moment, and the operations of the others then fail.
     */
    private static void work(Communicator communicator, Moment moment) throws IOException {
        boolean throwing = communicator.rank() == THROWS;
        try (DeviceStream stream = communicator.device().newStream()) {
            MemorySegment data = communicator.device().allocate(1 << 20, Arena.ofAuto());
            for (int i = 0;; i++) {
                if (throwing && (moment == Moment.BEFORE || moment == Moment.BETWEEN && i == 3)) {
                    throw new IOException("no more rows");
                }
                communicator.allReduce(data, data, 1 << 17, DataType.INT64, ReduceOp.SUM, stream);
                if (throwing && moment == Moment.INSIDE) {
                    throw new IOException("no more rows");
                }
                stream.synchronize(TIMEOUT);
            }
        }
    }

    private static void assertEnded(List<Throwable> thrown, String how) {
        for (int rank = 0; rank < thrown.size(); rank++) {
            if (rank == THROWS) {
                IOException own = assertInstanceOf(IOException.class, thrown.get(rank));
                assertEquals("no more rows", own.getMessage());
                assertEquals(List.of(), List.of(own.getSuppressed()));
            } else {
                AbortedException told = assertInstanceOf(AbortedException.class, thrown.get(rank));
                assertTrue(told.getMessage().contains(how), told.getMessage());
                assertEquals(OptionalInt.of(THROWS), told.peer(), told.getMessage());
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"BEFORE, 2, shm", "BEFORE, 3, socket", "INSIDE, 2, socket", "INSIDE, 4, shm", "BETWEEN, 3, shm",
            "BETWEEN, 4, socket", "BETWEEN, 2, auto"})
    void runTellsTheOthersWhatWasThrown(Moment moment, int ranks, String network) throws Exception {
        assertEnded(EngineGroup.call(ranks, rank -> () -> {
            builder(rank, ranks, network).run(communicator -> work(communicator, moment));
            return null;
        }), "rank 1 aborted the communicator: java.io.IOException: no more rows");
    }

    /**
     * The program does not abort before {@code close()}. The method {@code close()} cannot see that an exception is in
     * flight. The other ranks therefore learn only which operation the closed rank has not begun.
     */
    @ParameterizedTest
    @CsvSource({"BEFORE, 2, shm", "BEFORE, 3, socket", "INSIDE, 2, socket", "INSIDE, 4, shm", "BETWEEN, 3, shm",
            "BETWEEN, 4, socket", "BETWEEN, 2, auto"})
    void closeTellsTheOthersWhichOperationThisRankHasNotBegun(Moment moment, int ranks, String network)
            throws Exception {
        int launched = moment == Moment.BEFORE ? 0 : moment == Moment.INSIDE ? 1 : 3;
        assertEnded(EngineGroup.call(ranks, rank -> () -> {
            try (Communicator communicator = builder(rank, ranks, network).join()) {
                work(communicator, moment);
            }
            return null;
        }), "rank 1 has closed the communicator without an operation that this rank has begun: collective operation "
                + launched
                + ", counted from 0. Let each rank call every operation before it closes. If an exception closed"
                + " rank 1, use Millrace.run or abort(reason), which report the exception to the other ranks");
    }

    /** Rank 1 closes first. Rank 0 then begins an operation that rank 1 has not begun. */
    @ParameterizedTest
    @EnumSource
    void anOperationThatIsBegunAfterARankHasClosedFails(Transfer transfer) throws Exception {
        CountDownLatch left = new CountDownLatch(1);
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            try (Communicator communicator = builder(rank, 2, "shm").closeDeadline(Duration.ofMillis(100)).join();
                    DeviceStream stream = communicator.device().newStream()) {
                if (rank == 0) {
                    assertTrue(left.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
                    MemorySegment data = communicator.device().allocate(8, Arena.ofAuto());
                    transfer.call.issue(communicator, data, stream);
                    stream.synchronize(TIMEOUT);
                }
            } finally {
                left.countDown();
            }
            return null;
        });
        AbortedException told = assertInstanceOf(AbortedException.class, thrown.get(0));
        assertTrue(told.getMessage().contains(transfer.named + " 0"), told.getMessage());
        // rank 0 had not closed when the close deadline of rank 1 passed
        assertInstanceOf(DeadlineException.class, thrown.get(1));
    }

    /** Operation of rank 0 for which rank 1 has no counterpart. */
    enum Transfer {
        COLLECTIVE("collective operation",
                (communicator, data, stream) -> communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM,
                        stream)),
        SEND("the receive number",
                (communicator, data, stream) -> communicator.send(data, 1, DataType.INT64, 1, stream)),
        RECEIVE("the send number",
                (communicator, data, stream) -> communicator.receive(data, 1, DataType.INT64, 1, stream));

        private interface Call {
            void issue(Communicator communicator, MemorySegment data, DeviceStream stream);
        }

        private final String named;
        private final Call call;

        Transfer(String named, Call call) {
            this.named = named;
            this.call = call;
        }
    }

    @Test
    void aReasonIsTheCauseHereAndTextThere() throws Exception {
        IllegalStateException reason = new IllegalStateException("disk full");
        CountDownLatch aborted = new CountDownLatch(1);
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            try (Communicator communicator = builder(rank, 2, "auto").join()) {
                if (rank == THROWS) {
                    communicator.abort(reason);
                    AbortedException own =
                            assertInstanceOf(AbortedException.class, communicator.asyncError().orElseThrow());
                    assertSame(reason, own.getCause());
                    aborted.countDown();
                } else {
                    assertTrue(aborted.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
                    work(communicator, Moment.BETWEEN);
                }
            }
            return null;
        });
        assertNull(thrown.get(THROWS));
        AbortedException told = assertInstanceOf(AbortedException.class, thrown.getFirst());
        assertTrue(
                told.getMessage()
                        .contains("rank 1 aborted the communicator: java.lang.IllegalStateException: disk full"),
                told.getMessage());
    }

    @Test
    void aProgramThatEndsWellIsClosed() throws Exception {
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            builder(rank, 2, "auto").run(communicator -> {
                try (DeviceStream stream = communicator.device().newStream()) {
                    MemorySegment data = communicator.device().allocate(8, Arena.ofAuto());
                    communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM, stream);
                    stream.synchronize(TIMEOUT);
                }
            });
            return null;
        });
        thrown.forEach(failure -> assertNull(failure));
    }
}
