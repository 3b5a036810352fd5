package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Communicator;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/**
 * Functions that run after an operation's {@link CompletionStage}. The JVM runs more ranks than the machine has cores.
 */
class CallbacksTest {

    private static final int RANKS = Runtime.getRuntime().availableProcessors() + 2;

    /** Starts an all-reduce of the given operand. Returns the stage of the operation. */
    private static CompletionStage<Void> count(Communicator communicator, float[] sum, DeviceStream stream) {
        return communicator.allReduce(Operand.of(sum), ReduceOp.SUM, stream);
    }

    private static void await(CompletionStage<?> stage) throws Exception {
        stage.toCompletableFuture().get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    @ParameterizedTest(name = "asynchronous: {0}")
    @ValueSource(booleans = {false, true})
    void functionsOfAllRanksBlockUntilAllRun(boolean asynchronous) throws Exception {
        CountDownLatch running = new CountDownLatch(RANKS);
        Millrace.local(RANKS, communicator -> {
            try (DeviceStream stream = communicator.device().newStream()) {
                Runnable function = () -> {
                    running.countDown();
                    try {
                        assertTrue(running.await(20, TimeUnit.SECONDS), running + ": functions do not run");
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                };
                CompletionStage<Void> stage = count(communicator, new float[] {1}, stream);
                await(asynchronous ? stage.thenRunAsync(function) : stage.thenRun(function));
            }
        });
    }

    @Test
    void aFunctionCallsABlockingOperation() throws Exception {
        Millrace.local(RANKS, communicator -> {
            float[] sum = {1};
            try (DeviceStream stream = communicator.device().newStream()) {
                await(count(communicator, sum, stream)
                        .thenRun(() -> communicator.allReduce(Operand.of(sum), ReduceOp.SUM)));
            }
            assertEquals(RANKS * RANKS, sum[0]);
        });
    }

    @Test
    void composedOperationsFollowEachOther() throws Exception {
        Millrace.local(RANKS, communicator -> {
            float[] sum = {1};
            try (DeviceStream stream = communicator.device().newStream()) {
                await(count(communicator, sum, stream).thenCompose(_ -> count(communicator, sum, stream))
                        .thenCompose(_ -> communicator.broadcast(Operand.of(sum), 0, stream)));
            }
            assertEquals(RANKS * RANKS, sum[0]);
        });
    }

    @Test
    void aCancelledStageLeavesTheCommunicatorUsable() throws Exception {
        Millrace.local(RANKS, communicator -> {
            try (DeviceStream stream = communicator.device().newStream()) {
                CompletableFuture<Void> stage = count(communicator, new float[] {1}, stream).toCompletableFuture();
                assertTrue(stage.cancel(true) || stage.isDone());
            }
            communicator.barrier();
        });
    }
}
