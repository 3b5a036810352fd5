package org.millrace.gin;

import org.millrace.abi.GinQueueMemory;

/**
 * Finds out which of many queues have a descriptor. A program asks for a hundred contexts and uses a few: so all that a
 * look at a queue without one costs is a load of the word that its next descriptor begins with. Queues that had none
 * for long are idle, and looked at in turn, {@value #IDLE_CYCLE} passes for all of them, as long as there is something
 * to do elsewhere. One thread.
 *
 * <pre>
 *   queues    [0, busy)        [busy, count)
 *             every pass       in turn
 * </pre>
 */
final class QueueWatch {

    /** Passes in which every idle queue is looked at once, and no more: what a kernel's first descriptor waits. */
    static final int IDLE_CYCLE = 8;
    /** Passes without a descriptor after which a queue is idle: the pause between two kernels is shorter. */
    private static final int BUSY_PASSES = 4096;
    /** Passes from one look for queues that have become idle to the next; a power of two. */
    private static final int SORTING = 256;

    /**
     * Parts that are moved from a queue before the others have their turn: many from one, few from each of many, as
     * copies of different queues may be begun at once and those of one often not.
     */
    private static final int MOST_AT_ONCE = 256;
    private static final int LEAST_AT_ONCE = 4;

    private final QueueDrain[] drains;
    /** By queue: the address of the word that its next descriptor begins with; 0 if one is under way. */
    private final long[] next;
    /** By queue: the number of the last pass that found something. */
    private final long[] used;
    private int busy;
    /** The queue that every pass begins with is another. */
    private int first;
    private int idleCursor;
    private long pass;

    /** All are busy at first. */
    QueueWatch(QueueDrain[] drains) {
        this.drains = drains;
        next = new long[drains.length]; // zeros: all are asked once
        used = new long[drains.length];
        busy = drains.length;
    }

    /** One for each queue, in no order. */
    QueueDrain[] drains() {
        return drains;
    }

    /**
     * Drains the queues that have something; returns how much was done.
     *
     * @param quiet whether the agent has found no work for some time: all queues are looked at then
     */
    int pull(boolean quiet) {
        pass++;
        int idle = drains.length - busy;
        int looks = busy + (quiet ? idle : (idle + IDLE_CYCLE - 1) / IDLE_CYCLE);
        int rotated = busy;
        int most = Math.max(LEAST_AT_ONCE, MOST_AT_ONCE / Math.max(busy, 1));
        int work = 0;
        for (int i = 0; i < looks; i++) {
            int at = i < rotated ? rotate(i, rotated) : nextIdle();
            if (next[at] != 0 && !GinQueueMemory.isBegunAt(next[at])) {
                continue;
            }
            work += drains[at].drain(most); // from here: compilers inline only so deep, and this is where it matters
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

    /** Puts those that have become idle behind the others. */
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
