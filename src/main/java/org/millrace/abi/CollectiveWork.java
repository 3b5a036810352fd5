package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevWorkColl;

/**
 * {@code ncclDevWorkColl}: one collective operation on a range of channels.
 *
 * <pre>
 *    0     1     2      3      4      8          16         24          56                     88        96        112
 *    +-----+-----+------+------+------+----------+----------+-- - - ----+----------------------+---------+---------+
 *    | lo  | hi  |warps |flags | root | recvbuff | sendbuff |registered | countLo,Mid,Hi,grains| redOp   |  pad    |
 *    +-----+-----+------+------+------+----------+----------+-- - - ----+----------------------+---------+---------+
 * </pre>
 *
 * <p>
 * The elements are spread continuously over channels {@code lo} to {@code hi}. The first channel, the last channel and
 * all channels between them have a count each. They also have a chunk size each, of 21 bits, in grains of the protocol.
 * A block is one warp here.
 *
 * <p>
 * All accesses are plain, because the kernel's launch orders them. Facts: NCCL 2.28 {@code device.h},
 * {@code enqueue.cc}.
 */
public final class CollectiveWork {
    public static final int BYTES = (int) ncclDevWorkColl.sizeof();
    /** Flag: the elements are passed on in memory that is registered with the network. */
    public static final int NETWORK_REGISTERED = device_h.MILLRACE_COLL_NET_REGISTERED();
    /** Flag: peers' devices read the data that this rank sends in the user's buffers, see {@link #read}. */
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
     * @throws IllegalArgumentException if the segment is shorter than an item
     */
    public static CollectiveWork of(MemorySegment segment) {
        if (segment.byteSize() < BYTES) {
            throw new IllegalArgumentException(
                    "ncclDevWorkColl is " + BYTES + " bytes, but the segment has " + segment.byteSize());
        }
        return new CollectiveWork(segment);
    }

    /** {@return the bytes of the item} */
    public MemorySegment segment() {
        return segment;
    }

    /**
     * Sets how the elements are spread over the channels.
     *
     * @param first  number of elements of the first channel
     * @param middle number of elements of each channel between the first and the last
     * @param last   number of elements of the last channel, if it is not the first
     */
    public void spread(int low, int high, long first, long middle, long last) {
        segment.set(ValueLayout.JAVA_BYTE, CHANNEL_LOW, (byte) low);
        segment.set(ValueLayout.JAVA_BYTE, CHANNEL_HIGH, (byte) high);
        Words.LONG.set(segment, COUNT_LOW, first);
        Words.LONG.set(segment, COUNT_MIDDLE, middle);
        Words.LONG.set(segment, COUNT_HIGH, last);
    }

    /**
     * Sets the chunk sizes and the number of warps of a block.
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

    /** {@return the bytes of a grain ({@code ncclProtoGrainSize})} */
    public static int grainBytes(Protocol protocol) {
        return switch (protocol) {
            case LL -> 16;
            case LL128 -> 1920;
            case SIMPLE -> 512;
        };
    }

    /**
     * {@return the bytes of a chunk of a channel; 0 if the item does not contain the size, or if it is less than a
     * grain}
     */
    public long chunkBytes(Protocol protocol, int channel) {
        int place = channel == channelLow() ? 0 : channel == channelHigh() ? 2 : 1;
        return ((long) Words.LONG.get(segment, CHUNK_GRAINS) >>> place * GRAINS_BITS & GRAINS_MASK)
                * grainBytes(protocol);
    }

    /** {@return the number of warps of a block; 0 if the item does not contain it} */
    public int warps() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, WARPS));
    }

    /**
     * Sets the buffers, the root, the argument of the reduction, and the flags.
     *
     * @param root  the root rank; this rank itself if the operation has no root
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
     * Sets which buffers are registered, so that peers' devices may read in them. The fields are
     * {@code sendbuffRmtAddrs} and {@code recvbuffRmtAddrs}. Each connection determines the address at which a peer
     * reads.
     */
    public void read(boolean input, boolean output) {
        Words.LONG.set(segment, SEND_REMOTE, input ? sendBuffer() : 0L);
        Words.LONG.set(segment, RECEIVE_REMOTE, output ? receiveBuffer() : 0L);
        flags(flags() | REGISTERED);
    }

    /** {@return whether peers' devices may read in the input buffer} */
    public boolean isInputRead() {
        return (flags() & REGISTERED) != 0 && (long) Words.LONG.get(segment, SEND_REMOTE) != 0;
    }

    /** {@return whether peers' devices may read in the output buffer} */
    public boolean isOutputRead() {
        return (flags() & REGISTERED) != 0 && (long) Words.LONG.get(segment, RECEIVE_REMOTE) != 0;
    }

    /** Sets only the flags. */
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

    /** {@return the root rank; this rank itself if the operation has no root} */
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

    /** {@return the number of elements of the first channel} */
    public long countLow() {
        return (long) Words.LONG.get(segment, COUNT_LOW);
    }

    /** {@return the number of elements of each middle channel} */
    public long countMiddle() {
        return (long) Words.LONG.get(segment, COUNT_MIDDLE);
    }

    /** {@return the number of elements of the last channel} */
    public long countHigh() {
        return (long) Words.LONG.get(segment, COUNT_HIGH);
    }

    /** {@return the argument of the reduction, as raw bits} */
    public long reductionArgument() {
        return (long) Words.LONG.get(segment, ARGUMENT);
    }

    /** {@return the number of elements of all channels} */
    public long count() {
        // -1 on a single channel, where the middle and high counts are 0
        int between = channelHigh() - channelLow() - 1;
        return countLow() + countMiddle() * between + countHigh();
    }

    /** {@return the index of a channel's first element} */
    public long firstElement(int channel) {
        if (channel == channelLow()) {
            return 0;
        }
        return countLow() + (channel - channelLow() - 1) * countMiddle();
    }

    /** {@return the number of elements of a channel} */
    public long elements(int channel) {
        return channel == channelLow() ? countLow() : channel == channelHigh() ? countHigh() : countMiddle();
    }

    private static long offset(PathElement... path) {
        return ncclDevWorkColl.layout().byteOffset(path);
    }
}
