package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevWorkColl;

/**
 * {@code ncclDevWorkColl}: one collective operation, on some channels.
 *
 * <pre>
 *    0     1     2      3      4      8          16         24          56                     88        96        112
 *    +-----+-----+------+------+------+----------+----------+-- - - ----+----------------------+---------+---------+
 *    | lo  | hi  |warps |flags | root | recvbuff | sendbuff |registered | countLo,Mid,Hi,grains| redOp   |  pad    |
 *    +-----+-----+------+------+------+----------+----------+-- - - ----+----------------------+---------+---------+
 * </pre>
 *
 * <p>
 * Its elements are spread continuously over channels {@code lo} to {@code hi}: the first, the last, and all others have
 * each their own count, and each the bytes of a chunk, 21 bits in a protocol's grains. A block is one warp here.
 *
 * <p>
 * All accesses are plain: the kernel's launch orders them. Facts: NCCL 2.28 {@code device.h}, {@code enqueue.cc}.
 */
public final class CollectiveWork {
    public static final int BYTES = (int) ncclDevWorkColl.sizeof();
    /** Flag: elements are passed on in memory that is registered with the network. */
    public static final int NETWORK_REGISTERED = device_h.MILLRACE_COLL_NET_REGISTERED();
    /** Flag: peers' devices read what this rank sends where it lies, as {@link #read} says. */
    public static final int REGISTERED = device_h.MILLRACE_COLL_REGISTERED();
    /** Flag: a host reads the work counters of this operation. */
    public static final int PROFILED = device_h.MILLRACE_COLL_PROFILED();

    private static final long CHANNEL_LOW = offset(groupElement("channelLo"));
    private static final long CHANNEL_HIGH = offset(groupElement("channelHi"));
    private static final long FLAGS = offset(groupElement("collFlags"));
    private static final long ROOT = offset(groupElement("root"));
    private static final long RECEIVE_BUFFER = offset(groupElement("recvbuff"));
    private static final long SEND_BUFFER = offset(groupElement("sendbuff"));
    private static final long SEND_REMOTE = offset(groupElement("sendbuffRmtAddrs"));
    private static final long RECEIVE_REMOTE = offset(groupElement("recvbuffRmtAddrs"));
    private static final long COUNT_LOW =
            offset(groupElement("schedule"), groupElement("cbd"), groupElement("countLo"));
    private static final long COUNT_MIDDLE =
            offset(groupElement("schedule"), groupElement("cbd"), groupElement("countMid"));
    private static final long COUNT_HIGH =
            offset(groupElement("schedule"), groupElement("cbd"), groupElement("countHi"));
    private static final long CHUNK_GRAINS =
            offset(groupElement("schedule"), groupElement("cbd"), groupElement("chunkGrains"));
    private static final int GRAINS_BITS = device_h.MILLRACE_CBD_CHUNK_GRAINS_BITS();
    private static final long GRAINS_MASK = (1L << GRAINS_BITS) - 1;
    private static final long WARPS = offset(groupElement("nWarps"));
    private static final long ARGUMENT = offset(groupElement("redOpArg"));

    private final MemorySegment segment;

    private CollectiveWork(MemorySegment segment) {
        this.segment = segment;
    }

    /**
     * {@return a view of an item}
     *
     * @throws IllegalArgumentException if it is shorter
     */
    public static CollectiveWork of(MemorySegment segment) {
        if (segment.byteSize() < BYTES) {
            throw new IllegalArgumentException(
                    "ncclDevWorkColl is " + BYTES + " bytes, but the segment has " + segment.byteSize());
        }
        return new CollectiveWork(segment);
    }

    /** {@return the item's bytes} */
    public MemorySegment segment() {
        return segment;
    }

    /**
     * Sets how the elements are spread.
     *
     * @param last elements of the last channel, if it is not the first
     */
    public void spread(int low, int high, long first, long middle, long last) {
        segment.set(ValueLayout.JAVA_BYTE, CHANNEL_LOW, (byte) low);
        segment.set(ValueLayout.JAVA_BYTE, CHANNEL_HIGH, (byte) high);
        Words.LONG.set(segment, COUNT_LOW, first);
        Words.LONG.set(segment, COUNT_MIDDLE, middle);
        Words.LONG.set(segment, COUNT_HIGH, last);
    }

    /**
     * Says how long chunks are, and with how many warps a block works.
     *
     * @param low    bytes of a chunk of the first channel
     * @param middle bytes of a chunk of each channel in between
     * @param high   bytes of a chunk of the last channel
     */
    public void chunks(Protocol protocol, long low, long middle, long high, int warps) {
        Words.LONG.set(segment, CHUNK_GRAINS, grains(protocol, low) | grains(protocol, middle) << GRAINS_BITS
                | grains(protocol, high) << 2 * GRAINS_BITS);
        segment.set(ValueLayout.JAVA_BYTE, WARPS, (byte) warps);
    }

    private static long grains(Protocol protocol, long bytes) {
        return Math.min(bytes / grainBytes(protocol), GRAINS_MASK);
    }

    /** {@return bytes of a grain ({@code ncclProtoGrainSize})} */
    public static int grainBytes(Protocol protocol) {
        return switch (protocol) {
            case LL -> 16;
            case LL128 -> 1920;
            case SIMPLE -> 512;
        };
    }

    /** {@return how long a chunk of a channel is; 0 if the item does not say it, or less than a grain} */
    public long chunkBytes(Protocol protocol, int channel) {
        int place = channel == channelLow() ? 0 : channel == channelHigh() ? 2 : 1;
        return ((long) Words.LONG.get(segment, CHUNK_GRAINS) >>> place * GRAINS_BITS & GRAINS_MASK)
                * grainBytes(protocol);
    }

    /** {@return with how many warps a block works; 0 if the item does not say it} */
    public int warps() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, WARPS));
    }

    /**
     * Sets what is done with the elements.
     *
     * @param root  the root rank; the rank itself where an operation has none
     * @param flags {@link #NETWORK_REGISTERED}, {@link #REGISTERED}, {@link #PROFILED}
     */
    public void set(long send, long receive, int root, long argument, int flags) {
        Words.LONG.set(segment, SEND_BUFFER, send);
        Words.LONG.set(segment, RECEIVE_BUFFER, receive);
        Words.INT.set(segment, ROOT, root);
        Words.LONG.set(segment, ARGUMENT, argument);
        flags(flags);
    }

    /**
     * Says which buffers are registered, so that peers' devices may read there ({@code sendbuffRmtAddrs}, {@code
     * recvbuffRmtAddrs}; where they read them is each connection's matter).
     */
    public void read(boolean input, boolean output) {
        Words.LONG.set(segment, SEND_REMOTE, input ? sendBuffer() : 0L);
        Words.LONG.set(segment, RECEIVE_REMOTE, output ? receiveBuffer() : 0L);
        flags(flags() | REGISTERED);
    }

    /** {@return whether peers' devices may read in the input} */
    public boolean isInputRead() {
        return (flags() & REGISTERED) != 0 && (long) Words.LONG.get(segment, SEND_REMOTE) != 0;
    }

    /** {@return whether peers' devices may read in the output} */
    public boolean isOutputRead() {
        return (flags() & REGISTERED) != 0 && (long) Words.LONG.get(segment, RECEIVE_REMOTE) != 0;
    }

    /** Sets the flags alone. */
    public void flags(int flags) {
        segment.set(ValueLayout.JAVA_BYTE, FLAGS, (byte) flags);
    }

    /** {@return the first channel} */
    public int channelLow() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, CHANNEL_LOW));
    }

    /** {@return the last channel} */
    public int channelHigh() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, CHANNEL_HIGH));
    }

    public int flags() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, FLAGS));
    }

    /** {@return the root rank; the rank itself where an operation has none} */
    public int root() {
        return (int) Words.INT.get(segment, ROOT);
    }

    /** {@return the address of the output} */
    public long receiveBuffer() {
        return (long) Words.LONG.get(segment, RECEIVE_BUFFER);
    }

    /** {@return the address of the input} */
    public long sendBuffer() {
        return (long) Words.LONG.get(segment, SEND_BUFFER);
    }

    /** {@return the first channel's elements} */
    public long countLow() {
        return (long) Words.LONG.get(segment, COUNT_LOW);
    }

    /** {@return a middle channel's elements} */
    public long countMiddle() {
        return (long) Words.LONG.get(segment, COUNT_MIDDLE);
    }

    /** {@return the last channel's elements} */
    public long countHigh() {
        return (long) Words.LONG.get(segment, COUNT_HIGH);
    }

    /** {@return the reduction's argument, as raw bits} */
    public long reductionArgument() {
        return (long) Words.LONG.get(segment, ARGUMENT);
    }

    /** {@return the elements of all channels} */
    public long count() {
        int between = channelHigh() - channelLow() - 1; // -1 on a single channel, whose middle and high counts are 0
        return countLow() + countMiddle() * between + countHigh();
    }

    /** {@return a channel's first element} */
    public long firstElement(int channel) {
        if (channel == channelLow()) {
            return 0;
        }
        return countLow() + (channel - channelLow() - 1) * countMiddle();
    }

    /** {@return how many elements a channel has} */
    public long elements(int channel) {
        return channel == channelLow() ? countLow() : channel == channelHigh() ? countHigh() : countMiddle();
    }

    private static long offset(PathElement... path) {
        return ncclDevWorkColl.layout().byteOffset(path);
    }
}
