package org.millrace.gin;

import org.millrace.abi.gin.GinQueueMemory;

/**
 * Finds the queues that contain a descriptor. A program may request a hundred contexts and use only a few of them. The
 * check of an empty queue is therefore only one load, of the first word of the queue's next descriptor. A queue that
 * has been empty for {@link #BUSY_PASSES} passes counts as idle. While other queues have work, a pass checks only a
 * part of the idle queues. Within {@value #IDLE_CYCLE} passes each idle queue is checked once. Used by one thread.
 *
 * <pre>
 *   index      [0, busy)               [busy, count)
 *   state      busy                    idle
 *   checked    in every pass           in turn, within {@value #IDLE_CYCLE} passes
 * </pre>
 */
final class QueueWatch {

    /**
     * Number of passes within which each idle queue is checked once. This number bounds the delay of the first
     * descriptor in an idle queue.
     */
    static final int IDLE_CYCLE = 8;
    /**
     * Number of passes without a descriptor after which a queue counts as idle. These passes take longer than the pause
     * between two kernels.
     */
    private static final int BUSY_PASSES = 4096;
    /** Number of passes between two calls of {@link #sort}; a power of two. */
    private static final int SORTING = 256;

    /**
     * Bounds of the number of parts that a pass moves from one queue. The maximum applies if only one queue is busy.
     * With more busy queues the number of parts decreases to the minimum, so that parts of different queues alternate.
     * Copies of different queues can overlap, whereas copies of one queue often must be made one after another.
     */
    private static final int MAX_PARTS = 256;
    private static final int MIN_PARTS = 4;

    private final QueueDrain[] drains;
    /**
     * For each queue, address of the first word of its next descriptor; 0 if the queue must be drained without a check.
     */
    private final long[] next;
    /** For each queue, ordinal of the newest pass that drained the queue. */
    private final long[] used;
    private int busy;
    /** Index of the busy queue that the next pass checks first. It changes with each pass. */
    private int first;
    private int idleCursor;
    private long pass;

    /** Creates a watch. All queues are busy at first. */
    QueueWatch(QueueDrain[] drains) {
        this.drains = drains;
        // The elements are 0, so the first pass drains every queue without a check.
        next = new long[drains.length];
        used = new long[drains.length];
        busy = drains.length;
    }

    /** Returns the drains of all queues, in no particular order. */
    QueueDrain[] drains() {
        return drains;
    }

    /**
     * Drains the queues that contain a descriptor. Returns the amount of work done.
     *
     * @param quiet whether the communicator's last passes had no work. If so, this pass checks all idle queues.
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
            // drain is called directly in this loop, because the call must be inlined and compilers inline only to a
            // limited depth.
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

    /** Sorts the queues again: the queues that have become idle follow the busy queues. */
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
