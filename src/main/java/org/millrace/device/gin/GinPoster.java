package org.millrace.device.gin;

import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinOp;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinException;

/**
 * Posts a block's descriptors into queues that other blocks also use. The block claims the next place of the queue by
 * an atomic add. The block waits until the place is free, and then stores the words of the descriptor.
 *
 * <pre>
 *   this block                                       the agent
 *   data into a window, then a release fence
 *   place = pis++ ; waits while place - cis >= size  cis (release) after the place is zero: pairs with the acquire here
 *   words → place                                    every word (acquire): pairs with the fence, so it sees the data
 * </pre>
 */
final class GinPoster {

    private final HostGinContext context;
    private final int rank;
    private final int number;
    private final BlockWait wait;
    private final int queueSize;

    GinPoster(HostGinContext context, int rank, int number, BlockWait wait) {
        this.context = context;
        this.rank = rank;
        this.number = number;
        this.wait = wait;
        this.queueSize = context.queues.queueSize();
    }

    /**
     * Posts a descriptor for a peer. Waits while the peer's queue is full. Returns the index of the descriptor in the
     * queue.
     */
    int post(int peer, long[] words) {
        VarHandle.releaseFence();
        int index = context.pis.getAndIncrement(peer);
        wait.begin();
        while (index - context.cis.acquire(peer) >= queueSize) {
            if (!wait.pause()) {
                throw stalled("for room in its queue", peer, index);
            }
        }
        context.queues.storeOpaque(context.queues.at(peer, index), words);
        return index;
    }

    /**
     * Posts one or two descriptors for a peer if the peer's queue has room. Returns false, and posts nothing, if the
     * queue has no room. Never claims a place that is not free yet.
     *
     * @param second second descriptor; null if there is only one
     */
    boolean tryPost(int peer, long[] words, long @Nullable [] second) {
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

    /**
     * Waits until the agent has completed the descriptors that were posted for a peer before this call. Also waits
     * until the data of the gets among these descriptors is visible.
     *
     * @param scratch memory for the words of a descriptor
     */
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
        wait.begin();
        while (context.cis.acquire(peer) - end < 0) {
            if (!wait.pause()) {
                throw stalled("for its descriptors", peer, end);
            }
        }
    }

    /**
     * Raises a peer's index to {@code value}. Does nothing if another block has raised the index to this value or to a
     * later value.
     */
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

    /**
     * A block's wait for a condition. The block first spins and then yields. The wait ends when the communicator fails
     * or the deadline passes. Used by one block.
     */
    static final class BlockWait {

        private static final int SPINS = 64;
        /** Number of pauses between two checks of the clock; a power of two. */
        private static final int CLOCK_INTERVAL = 256;

        private final GinCommunicator communicator;
        private final long nanos;
        private int passes;
        private long deadline;

        BlockWait(GinCommunicator communicator, long nanos) {
            this.communicator = communicator;
            this.nanos = nanos;
        }

        void begin() {
            passes = 0;
        }

        /** Waits a moment. Returns false if the deadline has passed. Throws if the communicator has failed. */
        boolean pause() {
            if (passes++ < SPINS) {
                Thread.onSpinWait();
                return true;
            }
            if (communicator.failure() != null) {
                communicator.throwIfFailed();
            }
            if (passes == SPINS + 1) {
                deadline = System.nanoTime() + nanos;
            } else if ((passes & CLOCK_INTERVAL - 1) == 0) {
                if (passes < 0) {
                    // The counter has wrapped. A negative count would make the block spin again, without checks of the
                    // deadline.
                    passes = SPINS + 1 + CLOCK_INTERVAL;
                }
                if (deadline - System.nanoTime() < 0) {
                    return false;
                }
            }
            Thread.yield();
            return true;
        }
    }
}
