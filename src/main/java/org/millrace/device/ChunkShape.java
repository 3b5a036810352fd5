package org.millrace.device;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.device.LineFormat.LL128Format;
import org.millrace.device.LineFormat.LLFormat;

/**
 * The form of a chunk in a connection: its number of steps, the number of steps of each slice, and the layout of the
 * data in the slots.
 *
 * @param chunkSteps number of steps of a chunk; an operation begins at a step that is a multiple of this number
 * @param sliceSteps number of steps of a slice
 * @param protocol   protocol of the slots; a chunk of LL or LL128 has one step
 * @param userBytes  size of a chunk in bytes if chunks stay in the user's memory (mode PTR); 0 if chunks pass through
 *                   slots
 */
public record ChunkShape(int chunkSteps, int sliceSteps, Protocol protocol, long userBytes) {

    /**
     * Shape for operations around a ring where all ranks send at the same time. While one slice is on the network, the
     * rank works on the next slice. NCCL's kernels use two slices of two steps for all-reduce, all-gather and
     * reduce-scatter. Millrace uses slices of one step. A core that has filled a slice of 128 KiB still finds the data
     * in its cache when it processes the data further.
     */
    public static final ChunkShape FOUR_SLICES = new ChunkShape(4, 1, Protocol.SIMPLE, 0);

    /**
     * Shape for the operations of {@link #FOUR_SLICES} if they have few elements. With few elements, four slices would
     * cost more time than they save by overlap.
     */
    static final ChunkShape TWO_SLICES = new ChunkShape(4, 2, Protocol.SIMPLE, 0);

    /**
     * Shape for operations whose elements flow in one direction: all operations except those of {@link #FOUR_SLICES}. A
     * rank can then send the next step without waiting for received data.
     */
    public static final ChunkShape ONE_STEP = new ChunkShape(1, 1, Protocol.SIMPLE, 0);

    private static final ChunkShape LL = new ChunkShape(1, 1, Protocol.LL, 0);
    private static final ChunkShape LL128 = new ChunkShape(1, 1, Protocol.LL128, 0);
    private static final LineFormat LL_LINES = new LLFormat();
    private static final LineFormat LL128_LINES = new LL128Format();

    /** Returns this shape for another protocol. For protocol Simple, returns this object. */
    public ChunkShape in(Protocol other) {
        return switch (other) {
            case LL -> LL;
            case LL128 -> LL128;
            case SIMPLE -> this;
        };
    }

    /**
     * Returns this shape for elements that stay in the user's registered memory. The protocol must be Simple.
     *
     * @param bytes size of a chunk in bytes; the same at both ends of a connection, even if only one end uses the
     *              user's memory
     */
    public ChunkShape inUserMemory(long bytes) {
        return new ChunkShape(chunkSteps, sliceSteps, protocol, bytes);
    }

    /**
     * Returns the shape for an operation, with fewer slices if its chunks are small. The shape has two slices if the
     * largest chunk fits into one slot. It has one slice if the second of two slices would be empty. Fewer slices mean
     * fewer network frames. All ranks get the same result, because the size of the operation is the same on all ranks.
     *
     * @param bytes size of the operation's largest chunk
     */
    public ChunkShape of(long bytes, ConnectionLayout layout) {
        long slotBytes = layout.slotBytes(protocol);
        if (chunkSteps == sliceSteps || bytes > slotBytes) {
            return this;
        }
        return bytes <= TWO_SLICES.sliceSteps * slotBytes / Slices.SMALLEST_DIVISOR ? ONE_STEP : TWO_SLICES;
    }

    /** Returns the maximum size of a chunk's data in bytes, without flags: the capacity of its slots. */
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
     * Division of a chunk of protocol Simple into slices, by NCCL's rule. Both ends of a connection use the same
     * division. A chunk always has the same number of slices. The slices after the end of the data are empty.
     *
     * @param perChunk number of slices of a chunk
     * @param smallest minimum number of elements of a slice, except for the last slice with data
     */
    record Slices(int perChunk, long smallest) {

        /** The number of elements of each slice is a multiple of this number, by NCCL's rule. */
        private static final long ALIGNMENT = 16;
        /** Size of a full slice, divided by the size of NCCL's smallest slice. */
        private static final long SMALLEST_DIVISOR = 32;

        static Slices of(ReceivePort[] from, SendPort[] to, int elementBytes, int chunkSteps, int sliceSteps) {
            long slotBytes = to.length > 0 ? to[0].slotBytes() : from[0].slotBytes();
            return new Slices(chunkSteps / sliceSteps, sliceSteps * slotBytes / elementBytes / SMALLEST_DIVISOR);
        }

        /**
         * Returns the number of elements of each slice of a chunk. The last slice with data may have fewer elements,
         * and later slices have none.
         */
        long elements(long chunkElements) {
            long share = (chunkElements + ALIGNMENT * perChunk - 1) / (ALIGNMENT * perChunk) * ALIGNMENT;
            return Math.max(share, smallest);
        }
    }
}
