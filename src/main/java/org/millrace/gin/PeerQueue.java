package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.GinIndices;
import org.millrace.abi.GinOp;
import org.millrace.abi.GinQueueMemory;

/**
 * One context's queue to one peer, seen by its consumer.
 *
 * <pre>
 *    cis = completed          seen                         pis (the device's)
 *    |  taken, under way      |  posted, or being written  |  free
 *    +------------------------+----------------------------+----------
 * </pre>
 *
 * Descriptors are taken one after another, and may complete in another order (a get waits for an answer); {@code cis}
 * moves in order.
 */
final class PeerQueue {

    private final GinContext context;
    private final int peer;
    private final GinQueueMemory memory;
    private final GinIndices cis;
    private final int mask;
    private final boolean[] done;
    private final int[] counters;
    private final GinDescriptor current = new GinDescriptor();
    private boolean hasCurrent;
    private int seen;
    private int completed;

    PeerQueue(GinContext context, int peer, GinQueueMemory memory, GinIndices cis) {
        this.context = context;
        this.peer = peer;
        this.memory = memory;
        this.cis = cis;
        this.mask = memory.queueSize() - 1;
        this.done = new boolean[memory.queueSize()];
        this.counters = new int[memory.queueSize()];
        this.completed = cis.acquire(peer);
        this.seen = completed;
    }

    public GinContext context() {
        return context;
    }

    /** Whether there is a descriptor to work on: the one that is not finished, or the next of the queue. */
    public boolean hasCurrent() {
        return hasCurrent || take();
    }

    private boolean take() {
        if (context.isClosed() || seen - completed == done.length) {
            return false;
        }
        long at = memory.at(peer, seen);
        if (!memory.isBegun(at) || !memory.take(at, current.words())) {
            return false;
        }
        current.decode(memory.format());
        hasCurrent = true;
        int slot = seen & mask;
        done[slot] = false;
        counters[slot] = current.has(GinOp.COUNTER) ? current.counter : -1;
        return true;
    }

    /**
     * The address of the word that the next descriptor will begin with; for a look that costs one load. Not to be read
     * any more when the context was closed.
     */
    public long nextAddress() {
        return memory.address(memory.at(peer, seen));
    }

    /** The descriptor to work on, if there is one. */
    public GinDescriptor current() {
        return current;
    }

    /** By which the current descriptor will be completed. */
    public int index() {
        return seen;
    }

    /** The current descriptor is passed on whole. Returns its index. */
    public int finish() {
        hasCurrent = false;
        context.count(current);
        return seen++;
    }

    /**
     * Nothing of a descriptor here is needed any more: its counter grows, and the places of all that are complete in
     * order are free.
     */
    public void complete(int index) {
        int slot = index & mask;
        done[slot] = true;
        if (context.isClosed()) {
            return;
        }
        if (counters[slot] >= 0) {
            context.counters().addRelease(counters[slot], 1);
        }
        int first = completed;
        while (completed != seen && done[completed & mask]) {
            completed++;
        }
        if (completed != first) {
            // pairs with the device's acquire: the places are zero, and the sources were read
            cis.release(peer, completed);
        }
    }

    int size() {
        return mask + 1;
    }

    /** How many descriptors were taken so far; from any thread, for a look. */
    int taken() {
        return seen;
    }

    /** How many of them are complete, in order; from any thread, for a look. */
    int completed() {
        return completed;
    }

    /** The communicator has failed: completes what is there without carrying it out. */
    void discard() {
        do {
            while (hasCurrent || take()) {
                hasCurrent = false;
                seen++;
            }
            for (int index = completed, end = seen; index != end; index++) {
                if (!done[index & mask]) {
                    complete(index);
                }
            }
        } while (take());
    }

    boolean isDrained() {
        return !hasCurrent && seen == completed && !memory.isBegun(memory.at(peer, seen));
    }

    /** Whether a descriptor is there that somebody should carry out. */
    public boolean isWaiting() {
        return hasCurrent
                || !context.isClosed() && seen - completed != done.length && memory.isBegun(memory.at(peer, seen));
    }

    /** The oldest that is not complete, for messages; null if there is none. */
    public @Nullable String describeOldest() {
        if (seen == completed && !isWaiting()) {
            return null;
        }
        return "context " + context.number() + ", descriptor " + Integer.toUnsignedString(completed)
                + (hasCurrent && completed == seen ? " (" + current + ")" : "");
    }
}
