package org.millrace.plugin.gin;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.Random;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinGpuContext;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinOp;
import org.millrace.abi.gin.GinQueueMemory;
import org.millrace.plugin.host.NativeMemory;

/**
 * Emulates a kernel of one of two ranks of this process. It posts three kinds of descriptors in a fixed cycle: signals
 * without data, puts of a value in the descriptor, and puts of bytes of the window. Every eighth descriptor targets the
 * kernel's own rank, and all others target the other rank. Sizes and offsets are random, so that the kernel takes all
 * branches. The JIT compiler leaves out a branch that was never taken. Such a branch later causes a deoptimization.
 * Used by one thread.
 */
public final class GinKernel {

    private static final int RANKS = 2;
    /** Number of signals, and also of counters, that the context must have. */
    public static final int SIGNALS = 64;
    /** Length of the window in bytes, the same at both ranks. */
    public static final long WINDOW_BYTES = 1 << 20;

    private static final int MAX_BYTES = 16 * 1024;

    private final GinDescriptorFormat format;
    private final int rank;
    private final long window;
    private final int puts;
    private final GinQueueMemory queues;
    private final GinIndices done;
    private final int queueSize;
    private final long[] words = new long[GinDescriptorFormat.MAX_WORDS];
    private final int[] posted = new int[RANKS];
    private final Random random = new Random(1);
    private int put;

    /**
     * @param device device handle that createContext returned for kernels
     * @param window handle of this rank's part of the window
     * @param puts   number of descriptors to post
     */
    public GinKernel(GinDescriptorFormat format, long device, int rank, long window, int puts) {
        this.format = format;
        this.rank = rank;
        this.window = window;
        this.puts = puts;
        NetDeviceHandle handle = NetDeviceHandle.of(NativeMemory.at(device, NetDeviceHandle.BYTES));
        GinGpuContext seen = GinGpuContext.of(NativeMemory.at(handle.handle(), handle.size()));
        queueSize = seen.queueSize();
        MemorySegment queued = NativeMemory.at(seen.queues(), GinQueueMemory.bytes(format, RANKS, queueSize));
        queues = GinQueueMemory.of(queued, format, RANKS, queueSize);
        done = GinIndices.of(NativeMemory.at(seen.cis(), RANKS * Integer.BYTES), RANKS);
    }

    /** Posts a descriptor if there is room. Returns false when all descriptors were posted and executed. */
    public boolean turn() {
        if (put == puts) {
            return done.acquire(0) != posted[0] || done.acquire(1) != posted[1];
        }
        int peer = put % 8 == 0 ? rank : 1 - rank;
        if (posted[peer] - done.acquire(peer) < queueSize) {
            describe(put++);
            VarHandle.fullFence();
            queues.storeOpaque(queues.at(peer, posted[peer]++), words);
        }
        return true;
    }

    private void describe(int number) {
        int bytes = switch (number % 4) {
            case 0 -> 0;
            case 1 -> Long.BYTES;
            default -> 1 + random.nextInt(MAX_BYTES);
        };
        boolean inline = bytes == Long.BYTES;
        int signal = number % 3 == 0 ? GinOp.SIGNAL_INC : GinOp.SIGNAL_ADD;
        format.begin(words, GinOp.PUT | signal | (inline ? GinOp.INLINE : GinOp.COUNTER), bytes);
        if (inline) {
            format.inline(words, number);
        } else {
            format.source(words, window, random.nextInt(MAX_BYTES));
        }
        format.target(words, window, WINDOW_BYTES / 2 + random.nextInt(MAX_BYTES));
        format.completion(words, number % SIGNALS, number % SIGNALS, 1);
    }
}
