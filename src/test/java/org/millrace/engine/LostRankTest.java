package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.ReduceOp;

/**
 * A rank is lost in the middle of any operation. Every rank learns of the loss, nothing hangs, and nothing is left
 * behind.
 */
@Tag("slow")
class LostRankTest extends EngineFixture {

    private static final int RANKS = 3;
    private static final int LOST = 1;

    private static void run(Communicator communicator, Operation operation, Runnable inBetween) {
        try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
            for (int i = 0; i < 40; i++) {
                new Call(operation, 30_000, ReduceOp.SUM, 1, false, i).new Running(communicator, stream, arena);
                if (i == 20) {
                    inBetween.run();
                }
            }
            try {
                stream.synchronize(TIMEOUT);
            } finally {
                communicator.abort(); // no thread may access the memory when it is freed below
            }
        }
    }

    private static void assertAllFailed(List<Throwable> thrown) {
        for (Throwable failure : thrown) {
            assertNotNull(failure, "every rank should have failed: " + thrown);
            assertTrue(failure instanceof MillraceException, String.valueOf(failure));
        }
    }

    @ParameterizedTest
    @EnumSource
    void anAbortEndsEveryRank(Operation operation) throws Exception {
        List<Throwable> thrown = EngineGroup.thrown(directory, RANKS, EngineGroup.settings("NCCL_BUFFSIZE", "32K"),
                communicator -> run(communicator, operation, () -> {
                    if (communicator.rank() == LOST) {
                        communicator.abort();
                    }
                }));
        // a rank that completed its own work before the abort does not fail
        assertNotNull(thrown.get(LOST));
        thrown.stream()
                .filter(failure -> failure != null)
                .forEach(
                        failure -> assertTrue(
                                failure.getMessage().contains("rank 1 aborted")
                                        || failure.getMessage().contains("the communicator is closed"),
                                failure.getMessage()));
        assertTrue(thrown.stream().filter(failure -> failure != null).count() >= 2, thrown.toString());
    }

    @ParameterizedTest
    @EnumSource
    void aConnectionThatIsCutEndsEveryRank(Operation operation) throws Exception {
        Map<String, String> settings = EngineGroup.settings("NCCL_BUFFSIZE", "32K", "MILLRACE_NET", "socket");
        Map<String, String> faulty = new HashMap<>(settings);
        faulty.put("MILLRACE_FAULT", "cut:frame=9");
        // the number of a rank that sends in this operation
        int cutting = operation == Operation.GATHER || operation == Operation.REDUCE ? 0 : LOST;
        List<Throwable> thrown = EngineGroup.call(RANKS, rank -> () -> {
            try (Communicator communicator =
                    EngineGroup.join(directory, rank, RANKS, rank == cutting ? faulty : settings)) {
                run(communicator, operation, () -> {});
            }
            return null;
        });
        if (operation == Operation.GATHER) {
            // a third rank completes if the socket buffers hold everything that the third rank sends to the root
            assertNotNull(thrown.get(LOST), thrown.toString());
            assertNotNull(thrown.get(cutting), thrown.toString());
            thrown.removeIf(Objects::isNull);
        }
        assertAllFailed(thrown);
    }

    @Test
    void aPeerThatNeverReceivesIsNamed() throws Exception {
        Map<String, String> settings = EngineGroup.settings("MILLRACE_STALL_DEADLINE", "1s");
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings, (communicator, stream, arena) -> {
            if (communicator.rank() == 0) {
                communicator.send(communicator.device().allocate(400, arena), 100, DataType.INT32, 1, stream);
                stream.synchronize(TIMEOUT);
            } else {
                communicator.allReduce(communicator.device().allocate(400, arena),
                        communicator.device().allocate(400, arena), 100, DataType.INT32, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
            }
        });
        assertAllFailed(thrown);
        // rank 1 may detect the deadlock first and inform rank 0
        assertTrue(thrown.get(0).getMessage().contains("the ranks wait for each other"), thrown.get(0).getMessage());
    }
}
