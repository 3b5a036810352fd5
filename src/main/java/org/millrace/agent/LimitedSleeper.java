package org.millrace.agent;

/**
 * Sleeper that limits the duration of its sleeps. Any thread may call {@link #wake}. The other methods are used by one
 * thread at a time.
 */
public final class LimitedSleeper implements Sleeper {

    private final Sleeper sleeper;
    private long limitNanos = Long.MAX_VALUE;

    /**
     * Creates a sleeper that passes each sleep to another sleeper. The sleeps of the new sleeper have no limit at
     * first.
     */
    public LimitedSleeper(Sleeper sleeper) {
        this.sleeper = sleeper;
    }

    /** Sets the longest duration of the following sleeps, in nanoseconds. */
    void limit(long nanos) {
        limitNanos = nanos;
    }

    @Override
    public boolean sleep(long nanos) {
        return sleeper.sleep(Math.clamp(limitNanos, 0, nanos));
    }

    @Override
    public void awake() {
        sleeper.awake();
    }

    @Override
    public void wake(Thread thread) {
        sleeper.wake(thread);
    }
}
