package org.millrace.gin;

import java.time.Duration;

/**
 * Detects that there was no progress for a configured time. It counts passes without work, and reads the clock only
 * once in {@value #PASSES_BETWEEN_CLOCKS} passes.
 */
final class StallDetector {

    /**
     * Number of passes without work between two reads of the clock; a power of two. The clock is read rarely, because
     * one read takes as long as the service of a peer.
     */
    private static final int PASSES_BETWEEN_CLOCKS = 1 << 12;

    private final long patience;
    private int passesWithoutWork;
    private boolean running;
    private long since;

    /** @param patience time without progress after which a stall is reported */
    StallDetector(Duration patience) {
        this.patience = patience.toNanos();
    }

    /**
     * Ends a pass. Returns true if no pass has had work for the configured time. While there is no work, returns true
     * at most once in each period of that length.
     *
     * @param work amount of work of the pass
     */
    boolean isStalled(int work) {
        if (work > 0) {
            passesWithoutWork = 0;
            reset();
            return false;
        }
        return (++passesWithoutWork & PASSES_BETWEEN_CLOCKS - 1) == 0 && isLong(System.nanoTime());
    }

    void reset() {
        running = false;
    }

    /**
     * Returns true if the configured time has passed since the first call after {@link #reset}, and since the last call
     * that returned true.
     *
     * @param now current time, as {@link System#nanoTime}
     */
    boolean isLong(long now) {
        if (!running) {
            running = true;
            since = now;
        }
        boolean is = now - since >= patience;
        if (is) {
            since = now;
        }
        return is;
    }
}
