package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;

/**
 * The frames in flight on one connection, oldest first. For each frame, this class stores the number of the frame's
 * first step, and the number of the step after the frame. A frame covers at least one step, so the number of frames
 * never exceeds the number of slots.
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
     * Returns the number of frames that were removed since the window was created. Callers compare it with the number
     * of frames that the network has completed.
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
