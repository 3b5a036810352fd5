package org.millrace.agent;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Something that another thread wants of an agent and waits for. The agent's thread attempts it after each pass until
 * it is answered; when {@link #await} has returned true, the agent's thread is done with it.
 */
public abstract class AgentRequest {

    private final CountDownLatch answered = new CountDownLatch(1);
    /** Written before the latch opens, which publishes it. */
    private boolean fulfilled;

    /** A request that was not asked yet. */
    protected AgentRequest() {}

    /**
     * Carries the request out if that is possible now, or gives it up. On the agent's thread.
     *
     * @return true if it called {@link #answer}; false to be asked again after the next pass
     */
    protected abstract boolean attempt();

    /**
     * Ends the request.
     *
     * @param done whether it was carried out; false if it was given up
     */
    protected final boolean answer(boolean done) {
        fulfilled = done;
        answered.countDown();
        return true;
    }

    /**
     * Whether it was carried out. To be asked after {@link #await} has returned true.
     *
     * @return false if it was given up
     */
    public final boolean isFulfilled() {
        return fulfilled;
    }

    /**
     * Waits for the answer, also if the waiting thread is interrupted: it is about to free memory that the agent uses.
     * The interrupt is kept for later.
     *
     * @param time how long at the most
     * @return false if the time was over first: the memory must not be freed
     */
    public final boolean await(Duration time) {
        long deadline = System.nanoTime() + time.toNanos();
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return answered.await(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
