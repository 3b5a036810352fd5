package org.millrace.agent;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The thread of an agent ends when the agent's runner is closed, and not before. */
@Timeout(60)
class AgentRunnerTest {

    private final CountDownLatch failures = new CountDownLatch(3);
    private final CountDownLatch inPass = new CountDownLatch(1);
    private final CountDownLatch held = new CountDownLatch(1);
    private volatile boolean ended;

    private class Played implements Agent {
        @Override
        public int doWork() {
            if (failures.getCount() > 0) {
                throw new IllegalStateException("a pass of the test's");
            }
            return 0;
        }

        @Override
        public String name() {
            return "played";
        }

        @Override
        public void onFailure(Throwable failure) {
            failures.countDown();
            throw new IllegalStateException("a failure's failure of the test's");
        }

        @Override
        public void onClose() {
            ended = true;
        }
    }

    @Test
    void aThrowOfTheAgentsFailureHandlerDoesNotEndTheThread() throws InterruptedException {
        try (AgentRunner _ = AgentRunner.start(new Played(), IdleProfile.ROOM.newStrategy())) {
            assertTrue(failures.await(30, TimeUnit.SECONDS), "the thread has ended after a failure");
        }
        assertTrue(ended);
    }

    /**
     * An interrupted close still waits for the agent's thread to end, because after the close the caller frees memory
     * that this thread uses.
     */
    @Test
    void anInterruptedCloserWaitsForTheThreadAllTheSame() throws InterruptedException {
        AgentRunner runner = AgentRunner.start(new Played() {
            @Override
            public int doWork() {
                inPass.countDown();
                try {
                    held.await();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
                return 0;
            }
        }, IdleProfile.ROOM.newStrategy());
        assertTrue(inPass.await(30, TimeUnit.SECONDS));
        AtomicBoolean endedFirst = new AtomicBoolean();
        AtomicBoolean keptInterrupt = new AtomicBoolean();
        Thread closer = Thread.ofPlatform().daemon().start(() -> {
            Thread.currentThread().interrupt();
            runner.close();
            endedFirst.set(ended);
            keptInterrupt.set(Thread.currentThread().isInterrupted());
        });
        while (closer.getState() != Thread.State.TIMED_WAITING && closer.getState() != Thread.State.TERMINATED) {
            Thread.onSpinWait();
        }
        held.countDown();
        closer.join();
        assertTrue(endedFirst.get(), "the closer did not wait for the pass");
        assertTrue(keptInterrupt.get());
    }

    @Test
    void aThreadThatGoesOnIsNotTakenForEnded() throws InterruptedException {
        Thread other = Thread.ofPlatform().daemon().start(() -> {
            try {
                held.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        assertFalse(Waiting.untilEnded(other, Duration.ofMillis(1)));
        held.countDown();
        assertTrue(Waiting.untilEnded(other, Duration.ofSeconds(30)));
    }
}
