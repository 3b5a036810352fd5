package org.millrace.gin;

import org.millrace.abi.GinQueueMemory;

/**
 * Finds the queues that have a descriptor. A program may request a hundred contexts and use only a few. A check of an
 * empty queue therefore costs only one load of the first word of its next descriptor. A queue that was empty for a long
 * time is idle. Idle queues are checked in turn, {@value #IDLE_CYCLE} passes for all of them, as long as other queues
 * have work. Used by one thread.
 *
 * <pre>
 *   queues    [0, busy)        [busy, count)
 *             every pass       in turn
 * </pre>
 */
final class QueueWatch {

    /**
     * Number of passes that check every idle queue once. It bounds the delay of a kernel's first descriptor.
     */
    static final int IDLE_CYCLE = 8;
    /** Number of passes without a descriptor after which a queue is idle. The pause between two kernels is shorter. */
    private static final int BUSY_PASSES = 4096;
    /** Number of passes between two searches for queues that have become idle; a power of two. */
    private static final int SORTING = 256;

    /**
     * Number of parts that are moved from a queue before the others have their turn. It is large for a single queue and
     * small for each of many queues. Copies of different queues may be begun at once, and copies of one queue often may
     * not.
     */
    private static final int MAX_PARTS = 256;
    private static final int MIN_PARTS = 4;

    private final QueueDrain[] drains;
    /** Address of the first word of the next descriptor, by queue; 0 if a descriptor is in progress. */
    private final long[] next;
    /** Number of the last pass that found a descriptor, by queue. */
    private final long[] used;
    private int busy;
    /** Index of the queue that the pass begins with, which changes with every pass. */
    private int first;
    private int idleCursor;
    private long pass;

    /** Creates a watch with all queues busy. */
    QueueWatch(QueueDrain[] drains) {
        this.drains = drains;
        next = new long[drains.length]; // zeros: every queue is checked once
        used = new long[drains.length];
        busy = drains.length;
    }

    /** Returns one drain for each queue, in no particular order. */
    QueueDrain[] drains() {
        return drains;
    }

    /**
     * Drains the queues that have a descriptor. Returns the amount of work done.
     *
     * @param quiet whether the agent has found no work for some time; all queues are checked then
     */
    int pull(boolean quiet) {
        pass++;
        int idle = drains.length - busy;
        int looks = busy + (quiet ? idle : (idle + IDLE_CYCLE - 1) / IDLE_CYCLE);
        int rotated = busy;
        int parts = Math.max(MIN_PARTS, MAX_PARTS / Math.max(busy, 1));
        int work = 0;
        for (int i = 0; i < looks; i++) {
            int at = i < rotated ? rotate(i, rotated) : nextIdle();
            if (next[at] != 0 && !GinQueueMemory.isBegunAt(next[at])) {
                continue;
            }
            // called from here, because compilers inline only to a limited depth, and inlining matters in this call
            work += drains[at].drain(parts);
            next[at] = drains[at].nextAddress();
            used[at] = pass;
            if (at >= busy) {
                swap(at, busy++);
            }
        }
        first = first + 1 < busy ? first + 1 : 0;
        if ((pass & SORTING - 1) == 0) {
            sort();
        }
        return work;
    }

    private int rotate(int i, int count) {
        int turn = first + i;
        return turn < count ? turn : turn - count;
    }

    private int nextIdle() {
        if (idleCursor < busy || idleCursor >= drains.length) {
            idleCursor = Math.min(busy, drains.length - 1);
        }
        return idleCursor++;
    }

    /** Moves queues that have become idle behind the others. */
    private void sort() {
        for (int at = busy - 1; at >= 0; at--) {
            if (pass - used[at] > BUSY_PASSES) {
                swap(at, --busy);
            }
        }
        first = first < busy ? first : 0;
    }

    private void swap(int one, int other) {
        QueueDrain drain = drains[one];
        drains[one] = drains[other];
        drains[other] = drain;
        long address = next[one];
        next[one] = next[other];
        next[other] = address;
        long when = used[one];
        used[one] = used[other];
        used[other] = when;
    }
}
