package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;

/**
 * The frames in flight on one connection, oldest first: a ring of their first and last steps. A frame covers at least
 * one step, so there are never more frames than slots.
 */
final class StepWindow {

    private final long[] steps = new long[ConnectionLayout.SLOTS];
    private final long[] ends = new long[ConnectionLayout.SLOTS];
    private long added;
    private long removed;

    void add(long step, long end) {
        int slot = ConnectionLayout.slot(added);
        steps[slot] = step;
        ends[slot] = end;
        added++;
    }

    long oldestStep() {
        return steps[ConnectionLayout.slot(removed)];
    }

    long oldestEnd() {
        return ends[ConnectionLayout.slot(removed)];
    }

    void removeOldest() {
        removed++;
    }

    /**
     * Returns the number of frames that have left the window since it was made. It is compared with the network's
     * number of completions.
     */
    long removed() {
        return removed;
    }

    boolean isEmpty() {
        return added == removed;
    }

    boolean isFull() {
        return added - removed == ConnectionLayout.SLOTS;
    }
}
