package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.GinIndices;
import org.millrace.abi.GinOp;
import org.millrace.abi.GinQueueMemory;

/**
 * One context's queue to one peer, as its consumer sees it.
 *
 * <pre>
 *    cis = completed          seen                         pis (the device's)
 *    |  taken, under way      |  posted, or being written  |  free
 *    +------------------------+----------------------------+----------
 * </pre>
 *
 * Descriptors are taken one after another, and may complete in another order, because a get waits for an answer.
 * {@code cis} moves in order.
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

    /** Returns whether there is a descriptor to process: the unfinished one, or the next one of the queue. */
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
     * Returns the address of the first word of the next descriptor, so that a check costs one load. The address must
     * not be read after the context was closed.
     */
    public long nextAddress() {
        return memory.address(memory.at(peer, seen));
    }

    /** Returns the descriptor to process; valid only if {@link #hasCurrent} returned true. */
    public GinDescriptor current() {
        return current;
    }

    /** Returns the index that completes the current descriptor. */
    public int index() {
        return seen;
    }

    /** Records that the current descriptor was completely passed on. Returns its index. */
    public int finish() {
        hasCurrent = false;
        context.count(current);
        return seen++;
    }

    /**
     * Completes a descriptor, because its local memory is no longer needed. Increments its counter, and frees the
     * places of all descriptors that are complete in order.
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

    /** Returns the number of descriptors taken so far. Other threads may read it as an approximate value. */
    int taken() {
        return seen;
    }

    /**
     * Returns the number of descriptors that are complete in order. Other threads may read it as an approximate value.
     */
    int completed() {
        return completed;
    }

    /** Completes the available descriptors without carrying them out, because the communicator has failed. */
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

    /** Returns whether there is a descriptor that was not carried out. */
    public boolean isWaiting() {
        return hasCurrent
                || !context.isClosed() && seen - completed != done.length && memory.isBegun(memory.at(peer, seen));
    }

    /** Describes for messages the oldest descriptor that is not complete. Returns null if all are complete. */
    public @Nullable String describeOldest() {
        if (seen == completed && !isWaiting()) {
            return null;
        }
        return "context " + context.number() + ", descriptor " + Integer.toUnsignedString(completed)
                + (hasCurrent && completed == seen ? " (" + current + ")" : "");
    }
}
