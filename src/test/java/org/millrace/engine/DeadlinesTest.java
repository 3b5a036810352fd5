package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Communicator;
import org.millrace.DeadlineException;
import org.millrace.DeviceStream;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/**
 * Each deadline expires after the time in its own setting. Each test sets one deadline to one second, first alone and
 * then together with other deadlines.
 */
@Tag("slow")
class DeadlinesTest {

    private static final Duration TIMEOUT = Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS);

    @TempDir
    Path directory;

    /** Returns settings that set one deadline, or all deadlines, to one second. */
    private static Map<String, String> settings(String setting, boolean together) {
        Map<String, String> settings = EngineGroup.settings(setting, "1s");
        if (together) {
            List.of("LATE", "STALL", "CLOSE").forEach(each -> {
                settings.put("MILLRACE_" + each + "_DEADLINE", "1s");
            });
        }
        return settings;
    }

    private static void await(CountDownLatch latch) throws InterruptedException {
        assertTrue(latch.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
    }

    private static void assertDeadline(String setting, int peer, Throwable thrown) {
        DeadlineException late = assertInstanceOf(DeadlineException.class, thrown);
        assertTrue(late.getMessage().contains(setting), late.getMessage());
        assertTrue(late.getMessage().contains("1000 ms") || late.getMessage().contains("1 s"), late.getMessage());
        assertEquals(peer, late.peer().orElse(-1), late.getMessage());
    }

    private static void allReduce(Communicator communicator) {
        communicator.allReduce(Operand.of(new float[100]), ReduceOp.SUM);
    }

    @ParameterizedTest(name = "together: {0}")
    @ValueSource(booleans = {false, true})
    void lateDeadlineActsOnARankThatDoesNotComeToAnOperation(boolean together) throws Exception {
        CountDownLatch failed = new CountDownLatch(1);
        Map<String, String> settings = settings("MILLRACE_LATE_DEADLINE", together);
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings, communicator -> {
            allReduce(communicator);
            if (communicator.rank() == 1) {
                await(failed);
                return;
            }
            try {
                allReduce(communicator);
            } finally {
                failed.countDown();
            }
        });
        assertDeadline("MILLRACE_LATE_DEADLINE", 1, thrown.get(0));
        assertNull(thrown.get(1));
    }

    @ParameterizedTest(name = "together: {0}")
    @ValueSource(booleans = {false, true})
    void stallDeadlineActsOnAnOperationThatAllRanksHaveStarted(boolean together) throws Exception {
        CountDownLatch failed = new CountDownLatch(1);
        Map<String, String> settings = settings("MILLRACE_STALL_DEADLINE", together);
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings, (communicator, stream, _) -> {
            allReduce(communicator);
            if (communicator.rank() == 0) {
                try {
                    allReduce(communicator);
                } finally {
                    failed.countDown();
                }
                return;
            }
            stream.call(() -> {
                try {
                    await(failed); // this wait blocks the device of this rank
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            });
            communicator.allReduce(Operand.of(new float[100]), ReduceOp.SUM, stream);
            await(failed);
        });
        assertDeadline("MILLRACE_STALL_DEADLINE", -1, thrown.get(0));
    }

    @ParameterizedTest(name = "together: {0}")
    @ValueSource(booleans = {false, true})
    void closeDeadlineActsOnARankThatDoesNotClose(boolean together) throws Exception {
        CountDownLatch left = new CountDownLatch(1);
        Map<String, String> settings = settings("MILLRACE_CLOSE_DEADLINE", together);
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings, communicator -> {
            allReduce(communicator);
            if (communicator.rank() == 1) {
                await(left);
                return;
            }
            DeadlineException late = assertThrows(DeadlineException.class, communicator::close);
            left.countDown();
            throw late;
        });
        assertDeadline("MILLRACE_CLOSE_DEADLINE", 1, thrown.get(0));
        assertNull(thrown.get(1));
    }

    @ParameterizedTest(name = "together: {0}")
    @ValueSource(booleans = {false, true})
    void closeDeadlineActsOnAnOperationThatIsNotComplete(boolean together) throws Exception {
        CountDownLatch left = new CountDownLatch(1);
        Map<String, String> settings = settings("MILLRACE_CLOSE_DEADLINE", together);
        settings.put("MILLRACE_LATE_DEADLINE", "1h");
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            Communicator communicator = EngineGroup.join(directory, rank, 2, settings);
            if (rank == 1) {
                await(left);
                communicator.close();
                return null;
            }
            DeviceStream stream = communicator.device().newStream();
            communicator.allReduce(Operand.of(new float[100]), ReduceOp.SUM, stream);
            DeadlineException late = assertThrows(DeadlineException.class, communicator::close);
            left.countDown();
            throw late;
        });
        assertDeadline("MILLRACE_CLOSE_DEADLINE", -1, thrown.get(0));
        assertNull(thrown.get(1));
    }

    @ParameterizedTest(name = "together: {0}")
    @ValueSource(booleans = {false, true})
    void connectDeadlineActsOnARankThatDoesNotJoin(boolean together) {
        Map<String, String> settings = settings("MILLRACE_CONNECT_DEADLINE", together);
        assertDeadline("MILLRACE_CONNECT_DEADLINE", 1,
                assertThrows(DeadlineException.class, () -> EngineGroup.join(directory, 0, 2, settings)));
    }

    @ParameterizedTest(name = "together: {0}")
    @ValueSource(booleans = {false, true})
    void deadlineOfABarrierActsOnARankThatDoesNotComeToIt(boolean together) throws Exception {
        CountDownLatch failed = new CountDownLatch(1);
        Map<String, String> settings = settings("MILLRACE_CLOSE_DEADLINE", together);
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings, communicator -> {
            if (communicator.rank() == 1) {
                await(failed);
                return;
            }
            try {
                communicator.barrier(Duration.ofSeconds(1));
            } finally {
                failed.countDown();
            }
        });
        assertDeadline("barrier", 1, thrown.get(0));
    }

    @ParameterizedTest(name = "together: {0}")
    @ValueSource(booleans = {false, true})
    void deadlineOfAStreamActsAndLeavesTheOperationRunning(boolean together) throws Exception {
        CountDownLatch late = new CountDownLatch(1);
        Map<String, String> settings = together ? settings("MILLRACE_STALL_DEADLINE", false) : EngineGroup.settings();
        EngineGroup.ranks(directory, 2, settings, (communicator, stream, _) -> {
            if (communicator.rank() == 1) {
                await(late);
            }
            communicator.allReduce(Operand.of(new float[100]), ReduceOp.SUM, stream);
            if (communicator.rank() == 0) {
                assertDeadline("have not completed within", -1,
                        assertThrows(DeadlineException.class, () -> stream.synchronize(Duration.ofSeconds(1))));
                late.countDown();
            }
            stream.synchronize(TIMEOUT);
        });
    }
}
