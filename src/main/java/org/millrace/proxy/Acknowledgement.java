package org.millrace.proxy;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Says that an agent's thread has let go of connections. */
public final class Acknowledgement {

    private final CountDownLatch given = new CountDownLatch(1);
    /** Written before the latch opens, which publishes it. */
    private boolean drained;

    /** Not given yet. */
    public Acknowledgement() {}

    /**
     * Said by the thread that lets go. Everything that it did before is seen by the thread that waits.
     *
     * @param drained whether nothing was under way any more
     */
    public void give(boolean drained) {
        this.drained = drained;
        given.countDown();
    }

    /**
     * Whether nothing was under way any more when the agent let go.
     *
     * @return false if it was given up; of a connection that failed, its {@link StopListener} knows
     */
    public boolean drained() {
        return drained;
    }

    /**
     * Waits for the agent's thread, also if the waiting thread is interrupted: whoever waits is about to free the
     * memory. The interrupt is kept for later.
     *
     * @param time how long at the most
     * @return false if the time was over first: the memory must not be freed
     */
    public boolean await(Duration time) {
        long deadline = System.nanoTime() + time.toNanos();
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return given.await(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
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
