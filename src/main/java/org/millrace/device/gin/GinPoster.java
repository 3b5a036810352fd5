package org.millrace.device.gin;

import java.lang.invoke.VarHandle;
import org.millrace.abi.GinIndices;
import org.millrace.abi.GinOp;
import org.millrace.gin.GinException;

/**
 * How a block puts descriptors into queues that other blocks use too: it claims the next place by an atomic add, waits
 * until the place is free, and stores the words.
 *
 * <pre>
 *   this block                                       the agent
 *   data into a window, then a release fence
 *   place = pis++ ; waits while place - cis >= size  cis (release) after the place is zero: pairs with the acquire here
 *   words → place                                    every word (acquire): pairs with the fence, the agent sees the data
 * </pre>
 */
final class GinPoster {

    private final HostGinContext context;
    private final int rank;
    private final int number;
    private final Patience patience;
    private final int queueSize;

    GinPoster(HostGinContext context, int rank, int number, Patience patience) {
        this.context = context;
        this.rank = rank;
        this.number = number;
        this.patience = patience;
        this.queueSize = context.queues.queueSize();
    }

    /** Posts, waiting while the queue is full; returns the place. */
    int post(int peer, long[] words) {
        VarHandle.releaseFence();
        int index = context.pis.getAndIncrement(peer);
        patience.begin();
        while (index - context.cis.acquire(peer) >= queueSize) {
            if (!patience.lasts()) {
                throw stalled("for room in its queue", peer, index);
            }
        }
        context.queues.storeOpaque(context.queues.at(peer, index), words);
        return index;
    }

    /** Posts one descriptor, or two, if there is room; places that cannot be used at once are not claimed. */
    boolean tryPost(int peer, long[] words, long[] second) {
        int count = second == null ? 1 : 2;
        int index;
        do {
            index = context.pis.acquire(peer);
            if (index + count - context.cis.acquire(peer) > queueSize) {
                return false;
            }
        } while (!context.pis.compareAndSet(peer, index, index + count));
        VarHandle.releaseFence();
        context.queues.storeOpaque(context.queues.at(peer, index), words);
        if (second != null) {
            context.queues.storeOpaque(context.queues.at(peer, index + 1), second);
        }
        return true;
    }

    void postGet(int peer, long[] words) {
        raise(context.lastIssuedGet, peer, post(peer, words) + 1);
    }

    boolean isFlushed(int peer) {
        return context.cis.acquire(peer) - context.pis.acquire(peer) >= 0;
    }

    /** Waits until what was posted for a peer is complete, and until its gets are visible. */
    void flush(int peer, long[] scratch) {
        int issued = context.lastIssuedGet.acquire(peer);
        awaitComplete(peer, context.pis.acquire(peer));
        if (issued - context.lastVisibleGet.acquire(peer) > 0) {
            context.queues.format().begin(scratch, GinOp.FLUSH, 0);
            awaitComplete(rank, post(rank, scratch) + 1);
            raise(context.lastVisibleGet, peer, issued);
        }
    }

    private void awaitComplete(int peer, int end) {
        patience.begin();
        while (context.cis.acquire(peer) - end < 0) {
            if (!patience.lasts()) {
                throw stalled("for its descriptors", peer, end);
            }
        }
    }

    /** Raises an index to a value, unless another block has raised it further. */
    private static void raise(GinIndices indices, int peer, int value) {
        int current = indices.acquire(peer);
        while (value - current > 0 && !indices.compareAndSet(peer, current, value)) {
            current = indices.acquire(peer);
        }
    }

    private GinException stalled(String what, int peer, int index) {
        return new GinException("rank " + rank + " -> rank " + peer + ", context " + number
                + ": a block waited too long " + what + ": it waits for descriptor " + Integer.toUnsignedString(index)
                + ", and those before " + Integer.toUnsignedString(context.cis.acquire(peer)) + " are complete");
    }
}
