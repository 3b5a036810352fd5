package org.millrace.gin;

import java.time.Duration;

/**
 * Detects that nothing has moved for a long time. It counts passes without work, and reads a clock only occasionally.
 */
final class StallDetector {

    /**
     * Number of passes between two reads of the clock; a power of two. A read of the clock costs as much as the service
     * of a peer.
     */
    private static final int PASSES_BETWEEN_CLOCKS = 1 << 12;

    private final long patience;
    private int passesWithoutWork;
    private boolean running;
    private long since;

    /**
     * Creates a detector.
     *
     * @param patience time without progress after which a stall is reported
     */
    StallDetector(Duration patience) {
        this.patience = patience.toNanos();
    }

    /** Ends a pass. Returns whether nothing has moved for the configured time, at most once in that time. */
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
     * Returns whether nothing has moved for the configured time since the first check, or since this method last
     * returned true.
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
