package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Communicator;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceFunction;
import org.millrace.ReduceOp;

/** Two threads in one communicator at the same time. */
class TwoThreadsTest {

    private static final List<Consumer<Communicator>> CALLS =
            List.of(communicator -> communicator.allReduce(1, ReduceOp.SUM),
                    communicator -> communicator.barrier(Duration.ofSeconds(1)),
                    communicator -> communicator.allReduce(Operand.of(new int[1]), ReduceFunction.SUM),
                    communicator -> communicator.group(() -> {}),
                    communicator -> communicator.send(Operand.of(new int[1]), 0, communicator.device().newStream()));

    private static Throwable thrownOn(Communicator communicator, Consumer<Communicator> call) {
        CompletableFuture<Throwable> thrown = new CompletableFuture<>();
        Thread.ofPlatform().name("second").start(() -> {
            try {
                call.accept(communicator);
                thrown.complete(null);
            } catch (Throwable reported) {
                thrown.complete(reported);
            }
        });
        return thrown.orTimeout(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS).join();
    }

    private static void assertReported(Communicator communicator, Consumer<Communicator> call) {
        Throwable thrown = thrownOn(communicator, call);
        assertEquals(IllegalStateException.class, thrown == null ? null : thrown.getClass());
        assertEquals(TwoThreadsTest.class.getName(), thrown.getStackTrace()[0].getClassName());
        assertTrue(thrown.getMessage()
                .contains(
                        "thread \"second\" uses the communicator while thread \"rank-0\" is in one of its operations"),
                thrown.getMessage());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4})
    void aSecondThreadIsReportedWithBothNames(int call) {
        Millrace.local(1, communicator -> {
            communicator.group(() -> assertReported(communicator, CALLS.get(call)));
            assertEquals(5, communicator.allReduce(5, ReduceOp.SUM), "the first thread cannot continue");
        });
    }

    @Test
    void aSecondThreadIsReportedDuringABlockingOperation() {
        Millrace.local(2, communicator -> {
            boolean[] asked = new boolean[1];
            communicator.allReduce(Operand.of(new double[] {1}), ReduceFunction.ofDoubles((first, second) -> {
                if (communicator.rank() == 0) {
                    asked[0] = true;
                    assertReported(communicator, CALLS.get(0));
                }
                return first + second;
            }));
            assertTrue(communicator.rank() != 0 || asked[0]);
        });
    }

    @Test
    void threadsTakeTurns() {
        Millrace.local(1, communicator -> {
            for (Consumer<Communicator> call : CALLS.subList(0, 4)) {
                call.accept(communicator);
                assertEquals(null, thrownOn(communicator, call));
            }
            assertThrows(IllegalArgumentException.class, () -> communicator.broadcast(Operand.of(new int[1]), 7));
            assertEquals(null, thrownOn(communicator, CALLS.get(0)), "a refused call has not ended");
        });
    }
}
