package org.millrace.device;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.device.LineFormat.LL128Format;
import org.millrace.device.LineFormat.LLFormat;

/**
 * The form of a chunk on its way: its number of steps, the number of steps of each slice, and the layout of its data in
 * their slots.
 *
 * @param chunkSteps number of steps of a chunk; operations begin at a multiple of it
 * @param protocol   protocol of the slots; protocols with lines have chunks of one step
 * @param userBytes  number of bytes of a chunk that stays in the user's memory (mode PTR); 0 if chunks pass through
 *                   slots
 */
public record ChunkShape(int chunkSteps, int sliceSteps, Protocol protocol, long userBytes) {

    /**
     * Shape for operations around a ring whose ranks all send at the same time. One slice travels while the rank works
     * on the next one. NCCL's kernels use two slices of two steps for all-reduce, all-gather and reduce-scatter. Here a
     * slice is one step, because the core that fills 128 KiB then still finds the data in its cache when it continues
     * with it.
     */
    public static final ChunkShape FOUR_SLICES = new ChunkShape(4, 1, Protocol.SIMPLE, 0);

    /** Shape for the same operations with less data. Four slices would cost more than their overlap saves. */
    static final ChunkShape TWO_SLICES = new ChunkShape(4, 2, Protocol.SIMPLE, 0);

    /** Shape for all other operations. Elements flow in one direction, and the next step follows at once. */
    public static final ChunkShape ONE_STEP = new ChunkShape(1, 1, Protocol.SIMPLE, 0);

    private static final ChunkShape LL = new ChunkShape(1, 1, Protocol.LL, 0);
    private static final ChunkShape LL128 = new ChunkShape(1, 1, Protocol.LL128, 0);
    private static final LineFormat LL_LINES = new LLFormat();
    private static final LineFormat LL128_LINES = new LL128Format();

    /** Returns the shape of the same operation in another protocol. For Simple it is this shape. */
    public ChunkShape in(Protocol other) {
        return switch (other) {
            case LL -> LL;
            case LL128 -> LL128;
            case SIMPLE -> this;
        };
    }

    /**
     * Returns the shape of the same operation with elements that stay in the user's registered memory. The protocol is
     * Simple.
     *
     * @param bytes number of bytes of a chunk; the same at both ends, even if only one of them uses the user's memory
     */
    public ChunkShape inUserMemory(long bytes) {
        return new ChunkShape(chunkSteps, sliceSteps, protocol, bytes);
    }

    /**
     * Returns the shape of an operation whose largest chunk has the given number of bytes. It has fewer slices if a
     * chunk fits into a slot. It has one slice if a second one would be empty, which saves one network frame for each
     * slice. The result is the same on all ranks, because the operation is.
     */
    public ChunkShape of(long bytes, ConnectionLayout layout) {
        long slotBytes = layout.slotBytes(protocol);
        if (chunkSteps == sliceSteps || bytes > slotBytes) {
            return this;
        }
        return bytes <= TWO_SLICES.sliceSteps * slotBytes / Slices.SMALLEST_DIVISOR ? ONE_STEP : TWO_SLICES;
    }

    /** Returns the number of data bytes, without flags, that a chunk's slots can hold. */
    public long chunkBytes(ConnectionLayout layout) {
        long slotBytes = layout.slotBytes(protocol);
        if (userBytes > 0) {
            return userBytes;
        }
        return switch (protocol) {
            case LL -> LL_LINES.dataCapacity(slotBytes);
            case LL128 -> LL128_LINES.dataCapacity(slotBytes);
            case SIMPLE -> chunkSteps * slotBytes;
        };
    }

    public Primitives primitives(ReceivePort[] from, SendPort[] to, BlockMemory memory) {
        if (userBytes > 0) {
            return new UserMemoryPrimitives(from, to, memory, this);
        }
        return switch (protocol) {
            case LL -> new LinePrimitives(LL_LINES, from, to, memory);
            case LL128 -> new LinePrimitives(LL128_LINES, from, to, memory);
            case SIMPLE -> new SimplePrimitives(from, to, memory, this);
        };
    }

    /**
     * Division of a chunk of protocol Simple into slices, by NCCL's rule. Both ends of a connection follow it. A chunk
     * always takes all its slices, and the slices after the end of the data are empty.
     *
     * @param smallest minimum number of elements of a slice, except for the last slice with data
     */
    record Slices(int perChunk, long smallest) {

        /** NCCL's unit of slicing, in elements. */
        private static final long ALIGNMENT = 16;
        /** A full slice divided by this is NCCL's smallest slice. */
        private static final long SMALLEST_DIVISOR = 32;

        static Slices of(ReceivePort[] from, SendPort[] to, int elementBytes, int chunkSteps, int sliceSteps) {
            long slotBytes = to.length > 0 ? to[0].slotBytes() : from[0].slotBytes();
            return new Slices(chunkSteps / sliceSteps, sliceSteps * slotBytes / elementBytes / SMALLEST_DIVISOR);
        }

        /** Returns the number of elements of each slice of a chunk, until no elements remain. */
        long elements(long chunkElements) {
            long share = (chunkElements + ALIGNMENT * perChunk - 1) / (ALIGNMENT * perChunk) * ALIGNMENT;
            return Math.max(share, smallest);
        }
    }
}
