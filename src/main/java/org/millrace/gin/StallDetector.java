package org.millrace.gin;

import java.time.Duration;

/**
 * Finds out that nothing has moved for long, by passes that find nothing to do and a clock that is read now and then.
 */
final class StallDetector {

    /** A power of two: to read a clock costs as much as to look after a peer. */
    private static final int PASSES_BETWEEN_CLOCKS = 1 << 12;

    private final long patience;
    private int passesWithoutWork;
    private boolean running;
    private long since;

    /** Says so after so long. */
    StallDetector(Duration patience) {
        this.patience = patience.toNanos();
    }

    /** A pass is over; returns whether nothing has moved for long, once in so long. */
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

    /** Whether nothing has moved for long since the first look, or since this said so last. */
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
