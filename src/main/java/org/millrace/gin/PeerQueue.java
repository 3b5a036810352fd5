package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinOp;
import org.millrace.abi.gin.GinQueueMemory;

/**
 * One context's queue to one peer. The kernel posts the queue's descriptors, and this class takes them. Indices grow
 * from left to right:
 *
 * <pre>
 *    cis = completed          seen                         pis (kept by the device)
 *    |  taken, in flight      |  posted, or being written  |  free
 *    +------------------------+----------------------------+----------
 * </pre>
 *
 * Descriptors are taken one after another. They may complete in another order, because a get waits for an answer. The
 * consumer index {@code cis} advances from left to right, up to the oldest incomplete descriptor.
 */
final class PeerQueue {

    private static final int NO_COUNTER = -1;
    /** State of a slot whose descriptor is complete. */
    private static final int DONE = -2;

    private final GinContext context;
    private final int peer;
    private final GinQueueMemory memory;
    private final GinIndices cis;
    private final int mask;
    /**
     * For each slot, the counter that the completion of its descriptor increments, {@link #NO_COUNTER}, or
     * {@link #DONE}.
     */
    private final int[] slots;
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
        this.slots = new int[memory.queueSize()];
        this.completed = cis.acquire(peer);
        this.seen = completed;
    }

    public GinContext context() {
        return context;
    }

    /**
     * Returns whether a descriptor is current. If no descriptor is current, first takes the next descriptor from the
     * queue.
     */
    public boolean hasCurrent() {
        return hasCurrent || take();
    }

    private boolean take() {
        if (context.isClosed() || seen - completed == slots.length) {
            return false;
        }
        long at = memory.at(peer, seen);
        if (!memory.isBegun(at) || !memory.take(at, current.words())) {
            return false;
        }
        current.decode(memory.format());
        hasCurrent = true;
        slots[seen & mask] = current.has(GinOp.COUNTER) ? current.counter : NO_COUNTER;
        return true;
    }

    /**
     * Returns the address of the first word of the next descriptor. A caller can poll the word there with one load. The
     * address must not be read after the context was closed.
     */
    public long nextAddress() {
        return memory.address(memory.at(peer, seen));
    }

    /** Returns the current descriptor; valid only after {@link #hasCurrent} has returned true. */
    public GinDescriptor current() {
        return current;
    }

    /** Returns the index of the current descriptor, for {@link #complete}. */
    public int index() {
        return seen;
    }

    /** Records that a path has moved all parts of the current descriptor. Returns the descriptor's index. */
    public int finish() {
        hasCurrent = false;
        context.count(current);
        return seen++;
    }

    /** Completes a descriptor as {@link #count} does, and publishes the completion. */
    public void complete(int index) {
        count(index);
        publish();
    }

    /**
     * Records that a descriptor is complete: its local memory is no longer needed. Increments the descriptor's counter.
     * The caller must call {@link #publish} afterwards; one call can publish several descriptors.
     */
    void count(int index) {
        int slot = index & mask;
        int counter = slots[slot];
        slots[slot] = DONE;
        if (counter >= 0 && !context.isClosed()) {
            context.counters().addRelease(counter, 1);
        }
    }

    /** Advances {@code cis}, which frees the slots of all descriptors before the oldest incomplete one. */
    void publish() {
        if (context.isClosed()) {
            return;
        }
        int first = completed;
        int end = first;
        while (end != seen && slots[end & mask] == DONE) {
            end++;
        }
        if (end != first) {
            completed = end;
            // A release: pairs with the device's acquire. Publishes that the slots are zero and the sources were read.
            cis.release(peer, completed);
        }
    }

    int size() {
        return mask + 1;
    }

    /**
     * Returns the index of the next descriptor to take. Threads except the agent's thread may get a slightly outdated
     * value.
     */
    int taken() {
        return seen;
    }

    /**
     * Returns the index of the oldest incomplete descriptor, or of the next descriptor to take if all are complete.
     * Threads except the agent's thread may get a slightly outdated value.
     */
    int completed() {
        return completed;
    }

    /** Completes all posted descriptors without carrying them out, because the communicator has failed. */
    void discard() {
        do {
            while (hasCurrent || take()) {
                hasCurrent = false;
                seen++;
            }
            for (int index = completed, end = seen; index != end; index++) {
                if (slots[index & mask] != DONE) {
                    count(index);
                }
            }
            publish();
        } while (take());
    }

    boolean isDrained() {
        return !hasCurrent && seen == completed && !memory.isBegun(memory.at(peer, seen));
    }

    /**
     * Returns whether a descriptor is not completely passed to a path: the current descriptor, or a posted descriptor
     * that is not taken yet.
     */
    public boolean isWaiting() {
        return hasCurrent
                || !context.isClosed() && seen - completed != slots.length && memory.isBegun(memory.at(peer, seen));
    }

    /** Returns a description of the oldest incomplete descriptor, for messages; null if all are complete. */
    public @Nullable String describeOldest() {
        if (seen == completed && !isWaiting()) {
            return null;
        }
        return "context " + context.number() + ", descriptor " + Integer.toUnsignedString(completed)
                + (hasCurrent && completed == seen ? " (" + current + ")" : "");
    }
}
