package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.CommunicatorException;
import org.millrace.DeviceStream;
import org.millrace.JoinBuilder;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Operand;
import org.millrace.OperationInterruptedException;
import org.millrace.ReduceOp;
import org.millrace.Serializer;

/** Interrupts of threads that wait for other ranks. */
class InterruptTest {

    private static final Duration LONG = Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS);

    /** A rank waits for this latch before it joins an operation, so that the other rank is interrupted first. */
    private final CountDownLatch interrupted = new CountDownLatch(1);
    private volatile Thread waiting;

    private void await() throws InterruptedException {
        assertTrue(interrupted.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
    }

    /** Returns a builder. The listener for stalls interrupts the waiting thread. */
    private JoinBuilder interruptedByReport() {
        return Millrace.builder()
                .device("host")
                .stallDeadline(Duration.ofMillis(100))
                .onStall(_ -> waiting.interrupt())
                .onLoss(_ -> {});
    }

    private OperationInterruptedException interrupted(Runnable call) {
        OperationInterruptedException thrown = assertThrows(OperationInterruptedException.class, call::run);
        assertTrue(Thread.interrupted(), "the interrupt status was cleared");
        interrupted.countDown();
        return thrown;
    }

    private static void allReduceWorks(Communicator communicator) {
        assertEquals(3, communicator.allReduce(communicator.rank() + 1L, ReduceOp.SUM));
    }

    @Test
    void anInterruptedThreadStartsNoOperation() {
        Millrace.local(2, communicator -> {
            if (communicator.rank() == 0) {
                Thread.currentThread().interrupt();
                assertTrue(interrupted(() -> communicator.allReduce(1, ReduceOp.SUM)).getMessage()
                        .contains("was not started"));
                Thread.currentThread().interrupt();
                interrupted(() -> communicator.allGather("text", Serializer.STRING));
            }
            allReduceWorks(communicator);
        });
    }

    @Test
    void anOperationContinuesWithoutItsInterruptedThread() throws Exception {
        interruptedByReport().runLocally(2, communicator -> {
            int[] values = {communicator.rank() + 1, 10};
            if (communicator.rank() == 0) {
                waiting = Thread.currentThread();
                OperationInterruptedException thrown =
                        interrupted(() -> communicator.allReduce(Operand.of(values), ReduceOp.SUM));
                thrown.completion().toCompletableFuture().get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
            } else {
                await();
                communicator.allReduce(Operand.of(values), ReduceOp.SUM);
            }
            assertArrayEquals(new int[] {3, 20}, values);
            allReduceWorks(communicator);
        });
    }

    /** The interrupted rank has begun an operation of two parts. The other rank would wait for the second part. */
    @Test
    void anInterruptWithinAComposedOperationAbortsTheGroup() {
        CommunicatorException thrown =
                assertThrows(CommunicatorException.class, () -> interruptedByReport().runLocally(2, communicator -> {
                    if (communicator.rank() == 1) {
                        waiting = Thread.currentThread();
                        interrupted(() -> communicator.broadcast(null, 0, Serializer.STRING));
                        assertThrows(MillraceException.class, communicator::barrier);
                    } else {
                        await();
                        communicator.broadcast("text", 0, Serializer.STRING);
                    }
                }));
        assertInstanceOf(AbortedException.class, thrown);
        assertTrue(thrown.getMessage().contains("interrupted within an operation that consists of several"),
                thrown.getMessage());
    }

    @Test
    void anInterruptedBarrierCountsAsCalled() throws Exception {
        Millrace.local(2, communicator -> {
            if (communicator.rank() == 0) {
                Thread.currentThread().interrupt();
                interrupted(() -> communicator.barrier(LONG));
            } else {
                await();
                communicator.barrier(LONG);
            }
            communicator.barrier(LONG);
            allReduceWorks(communicator);
        });
    }

    @Test
    void aStreamContinuesWithoutTheInterruptedThread() throws Exception {
        Millrace.local(2, communicator -> {
            try (DeviceStream stream = communicator.device().newStream()) {
                int[] values = {communicator.rank() + 1};
                if (communicator.rank() == 0) {
                    communicator.allReduce(Operand.of(values), ReduceOp.SUM, stream);
                    Thread.currentThread().interrupt();
                    OperationInterruptedException thrown = interrupted(() -> stream.synchronize(LONG));
                    assertFalse(thrown.getMessage().contains("1 operations"), thrown.getMessage());
                    thrown.completion().toCompletableFuture().get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
                } else {
                    await();
                    communicator.allReduce(Operand.of(values), ReduceOp.SUM, stream);
                }
                stream.synchronize(LONG);
                assertEquals(3, values[0]);
            }
        });
    }
}
