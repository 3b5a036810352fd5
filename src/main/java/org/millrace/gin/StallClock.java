package org.millrace.gin;

import java.time.Duration;

/** How long nothing has moved, for one who looks now and then. One thread. */
final class StallClock {

    private final long patience;
    private boolean running;
    private long since;

    /** Says so after so long. */
    StallClock(Duration patience) {
        this.patience = patience.toNanos();
    }

    /** Something moved. */
    void reset() {
        running = false;
    }

    /** Whether nothing has moved for long since the first look, or since this said so last. */
    boolean isLong() {
        return isLong(System.nanoTime());
    }

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
