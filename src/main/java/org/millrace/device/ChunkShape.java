package org.millrace.device;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.device.LineFormat.LL128Format;
import org.millrace.device.LineFormat.LLFormat;

/**
 * How a chunk travels: how many steps it takes, how many each of its slices, and how its data lies in their slots.
 *
 * @param chunkSteps steps of a chunk; operations begin at a multiple of it
 * @param protocol   of the slots; those with lines have chunks of one step
 * @param userBytes  bytes of a chunk that stays in the user's memory (mode PTR); 0 if chunks go through slots
 */
public record ChunkShape(int chunkSteps, int sliceSteps, Protocol protocol, long userBytes) {

    /**
     * Of operations around a ring in which every rank sends all the time: one slice travels while the next is worked
     * on. NCCL's kernels have two slices of two steps for all-reduce, all-gather and reduce-scatter; here a slice is
     * one step, since the core that fills 128 KiB finds them in its cache when it goes on with them.
     */
    public static final ChunkShape FOUR_SLICES = new ChunkShape(4, 1, Protocol.SIMPLE, 0);

    /** The same for less data, of which four slices would cost more than they overlap. */
    static final ChunkShape TWO_SLICES = new ChunkShape(4, 2, Protocol.SIMPLE, 0);

    /** Of all others: elements flow in one direction, and the next step is on its way behind this one. */
    public static final ChunkShape ONE_STEP = new ChunkShape(1, 1, Protocol.SIMPLE, 0);

    private static final ChunkShape LL = new ChunkShape(1, 1, Protocol.LL, 0);
    private static final ChunkShape LL128 = new ChunkShape(1, 1, Protocol.LL128, 0);
    private static final LineFormat LL_LINES = new LLFormat();
    private static final LineFormat LL128_LINES = new LL128Format();

    /** The shape of the same operation in another protocol; this one if that is Simple. */
    public ChunkShape in(Protocol other) {
        return switch (other) {
            case LL -> LL;
            case LL128 -> LL128;
            case SIMPLE -> this;
        };
    }

    /**
     * The shape of the same operation when its elements stay in registered memory of the user's; of protocol Simple.
     *
     * @param bytes of a chunk: the same at both ends, whether the other end uses the user's memory or not
     */
    public ChunkShape inUserMemory(long bytes) {
        return new ChunkShape(chunkSteps, sliceSteps, protocol, bytes);
    }

    /**
     * The shape of an operation whose largest chunk has so many bytes: fewer slices where a chunk fits into a slot, and
     * one where the second would be empty, which saves a frame of the network a slice. The same on all ranks, as the
     * operation is.
     */
    public ChunkShape of(long bytes, ConnectionLayout layout) {
        long slotBytes = layout.slotBytes(protocol);
        if (chunkSteps == sliceSteps || bytes > slotBytes) {
            return this;
        }
        return bytes <= TWO_SLICES.sliceSteps * slotBytes / Slices.SMALLEST_DIVISOR ? ONE_STEP : TWO_SLICES;
    }

    /** Bytes of data that a chunk's slots have room for, without flags. */
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
     * How a chunk of protocol Simple is cut into slices, by NCCL's rule, which both ends of a connection follow: a
     * chunk always takes all its slices, and those behind the data are empty.
     *
     * @param smallest elements of a slice that is not the last one with data, at the least
     */
    record Slices(int perChunk, long smallest) {

        /** NCCL's unit of slicing, in elements. */
        private static final long ALIGNMENT = 16;
        /** NCCL makes no slice smaller than a full one divided by this. */
        private static final long SMALLEST_DIVISOR = 32;

        static Slices of(ReceivePort[] from, SendPort[] to, int elementBytes, int chunkSteps, int sliceSteps) {
            long slotBytes = to.length > 0 ? to[0].slotBytes() : from[0].slotBytes();
            return new Slices(chunkSteps / sliceSteps, sliceSteps * slotBytes / elementBytes / SMALLEST_DIVISOR);
        }

        /** Elements of each slice of a chunk, until there are none left. */
        long elements(long chunkElements) {
            long share = (chunkElements + ALIGNMENT * perChunk - 1) / (ALIGNMENT * perChunk) * ALIGNMENT;
            return Math.max(share, smallest);
        }
    }
}
