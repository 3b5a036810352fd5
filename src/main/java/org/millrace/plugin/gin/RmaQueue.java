package org.millrace.plugin.gin;

import java.lang.invoke.VarHandle;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinOp;
import org.millrace.abi.gin.GinQueueMemory;
import org.millrace.gin.GinContext;
import org.millrace.gin.Window;

/**
 * Posts the host's one-sided operations in a GIN context, as a kernel would post them. The agent that serves kernels
 * executes these operations too, in the order of their posts.
 *
 * <p>
 * Each method that posts an operation returns an index in the queue of the operation's peer, or {@link #FULL}. Callable
 * from any thread.
 */
final class RmaQueue {

    /** Result of a post to a full queue. NCCL then repeats the call. */
    static final long FULL = -1;

    static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;

    private final GinContext context;
    private final GinQueueMemory queues;
    private final GinIndices cis;
    private final int[] pis;
    private final long[] words = new long[GinDescriptorFormat.MAX_WORDS];

    RmaQueue(GinContext context, GinQueueMemory queues, GinIndices cis, int peers) {
        this.context = context;
        this.queues = queues;
        this.cis = cis;
        this.pis = new int[peers];
    }

    GinContext context() {
        return context;
    }

    synchronized long put(int peer, Window source, long sourceOffset, long bytes, Window target, long targetOffset) {
        return room(peer) < 1 ? FULL : postPut(peer, source, sourceOffset, bytes, target, targetOffset);
    }

    /**
     * Posts a put and a signal, as two descriptors. The signal takes effect after the put, because the agent executes
     * the descriptors in the order of the queue.
     */
    synchronized long putAndSignal(int peer, Window source, long sourceOffset, long bytes, Window target,
            long targetOffset, Window signal, long signalOffset, long value) {
        if (room(peer) < 2) {
            return FULL;
        }
        if (bytes > 0) {
            postPut(peer, source, sourceOffset, bytes, target, targetOffset);
        }
        FORMAT.begin(words, GinOp.VA_SIGNAL | GinOp.SIGNAL_ADD, 0);
        FORMAT.source(words, signal.handle(), signalOffset);
        FORMAT.completion(words, 0, 0, value);
        return post(peer);
    }

    synchronized long get(int peer, Window remote, long remoteOffset, long bytes, Window local, long localOffset) {
        if (room(peer) < 1) {
            return FULL;
        }
        FORMAT.begin(words, GinOp.GET, bytes);
        FORMAT.source(words, remote.handle(), remoteOffset);
        FORMAT.target(words, local.handle(), localOffset);
        return post(peer);
    }

    synchronized long flush(int peer) {
        if (room(peer) < 1) {
            return FULL;
        }
        FORMAT.begin(words, GinOp.FLUSH, 0);
        return post(peer);
    }

    boolean isDone(int peer, int index) {
        return cis.acquire(peer) - index > 0;
    }

    private int room(int peer) {
        return queues.queueSize() - (pis[peer] - cis.acquire(peer));
    }

    private long postPut(int peer, Window source, long sourceOffset, long bytes, Window target, long targetOffset) {
        FORMAT.begin(words, GinOp.PUT, bytes);
        FORMAT.source(words, source.handle(), sourceOffset);
        FORMAT.target(words, target.handle(), targetOffset);
        return post(peer);
    }

    private long post(int peer) {
        int index = pis[peer]++;
        // This fence pairs with the agent's acquire of each word of the descriptor. The agent then sees the data that
        // the program stored in the source before this call.
        VarHandle.releaseFence();
        queues.storeOpaque(queues.at(peer, index), words);
        return Integer.toUnsignedLong(index);
    }

    /**
     * NCCL's handle of an operation in flight. It contains the operation's position in a queue, which shows whether the
     * operation is complete.
     *
     * <pre>
     *   63 62 61        48 47        32 31                0
     *  +--+--+------------+------------+-------------------+
     *  | 0| 1| context    | peer       | index in its queue|
     *  +--+--+------------+------------+-------------------+
     * </pre>
     */
    static final class Request {

        private static final long MARK = 1L << 62;
        private static final int CONTEXT_SHIFT = 48;
        private static final int PEER_SHIFT = 32;
        private static final int CONTEXT_MASK = (1 << 14) - 1;
        private static final int PEER_MASK = (1 << 16) - 1;

        private Request() {}

        static long pack(int context, int peer, int index) {
            return MARK | (long) (context & CONTEXT_MASK) << CONTEXT_SHIFT | (long) (peer & PEER_MASK) << PEER_SHIFT
                    | Integer.toUnsignedLong(index);
        }

        static int context(long request) {
            if ((request & MARK) == 0) {
                throw new IllegalArgumentException(
                        "0x" + Long.toHexString(request) + " does not name a request of this plugin");
            }
            return (int) (request >>> CONTEXT_SHIFT) & CONTEXT_MASK;
        }

        static int peer(long request) {
            return (int) (request >>> PEER_SHIFT) & PEER_MASK;
        }

        static int index(long request) {
            return (int) request;
        }
    }
}
