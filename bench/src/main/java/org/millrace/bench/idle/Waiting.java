package org.millrace.bench.idle;

/** Behavior of a thread without work: settings of {@link org.millrace.agent.IdleProfile.Backoff}. */
public enum Waiting {
    /** Spins only. */
    SPIN("spin", 1 << 30, 0, 1, 1),
    /** Spins, then yields the core. */
    YIELD("100 spins, then yield", 100, 1 << 30, 1, 1),
    /** Spins, yields, and sleeps for longer and longer. */
    BACKOFF("100 spins, 100 yields, then park 1 µs to 1 ms", 100, 100, 1_000, 1_000_000),
    /** Sleeps only. */
    PARK("park 50 µs", 0, 0, 50_000, 50_000);

    private final String title;
    private final int spins;
    private final int yields;
    private final long minParkNanos;
    private final long maxParkNanos;

    Waiting(String title, int spins, int yields, long minParkNanos, long maxParkNanos) {
        this.title = title;
        this.spins = spins;
        this.yields = yields;
        this.minParkNanos = minParkNanos;
        this.maxParkNanos = maxParkNanos;
    }

    /** {@return the title for readers} */
    public String title() {
        return title;
    }

    /** {@return the number of passes that only spin} */
    public int spins() {
        return spins;
    }

    /** {@return the number of passes that yield the core} */
    public int yields() {
        return yields;
    }

    /** {@return the first sleep, in nanoseconds} */
    public long minParkNanos() {
        return minParkNanos;
    }

    /** {@return the longest sleep, in nanoseconds} */
    public long maxParkNanos() {
        return maxParkNanos;
    }
}
