package org.millrace.abi.kernel;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.Protocol;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevWorkColl;
import org.millrace.foreign.Words;

/**
 * {@code ncclDevWorkColl}: one collective operation on a range of channels.
 *
 * <pre>
 *    0    1    2     3     4      8     24         32         40    48          80                      112     120
 *    +----+----+-----+-----+------+-----+----------+----------+-----+-- - - ----+-----------------------+-------+-----+
 *    | lo | hi |warps|flags| root | pad | recvbuff | sendbuff | pad |registered | countLo,Mid,Hi,grains | redOp | pad |
 *    +----+----+-----+-----+------+-----+----------+----------+-----+-- - - ----+-----------------------+-------+-----+
 * </pre>
 *
 * <p>
 * Each of the channels {@code lo} to {@code hi} processes one contiguous range of the elements. The struct has three
 * counts of elements: for the first channel, for each channel in the middle, and for the last channel. It also has
 * three chunk sizes of 21 bits each, in grains of the protocol ({@link #grainBytes}). In Millrace a block is one warp.
 *
 * <p>
 * All accesses are plain, because the launch of the kernel orders the host's stores before the kernel's loads. Facts:
 * NCCL 2.30 {@code device.h}, {@code enqueue.cc}. Up to NCCL 2.29, the struct had 96 bytes and no padding.
 */
public final class CollectiveWork {
    public static final int BYTES = (int) ncclDevWorkColl.sizeof();
    /** Flag: the elements that ranks send and receive lie in memory that is registered with the network. */
    public static final int NETWORK_REGISTERED = device_h.MILLRACE_COLL_NET_REGISTERED();
    /** Flag: the devices of peers read this rank's data directly in the user's buffers, see {@link #read}. */
    public static final int REGISTERED = device_h.MILLRACE_COLL_REGISTERED();
    /** Flag: the host reads the {@link WorkCounters} of this operation. */
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
     * {@return a view of a work item}
     *
     * @throws IllegalArgumentException if the segment is shorter than a work item
     */
    public static CollectiveWork of(MemorySegment segment) {
        if (segment.byteSize() < BYTES) {
            throw new IllegalArgumentException(
                    "ncclDevWorkColl is " + BYTES + " bytes, but the segment has " + segment.byteSize());
        }
        return new CollectiveWork(segment);
    }

    /** {@return the memory of the work item} */
    public MemorySegment segment() {
        return segment;
    }

    /**
     * Sets the channels, and the number of elements of each channel.
     *
     * @param low    first channel
     * @param high   last channel
     * @param first  number of elements of the first channel
     * @param middle number of elements of each channel between the first and the last
     * @param last   number of elements of the last channel; 0 if the first channel is the only one
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
     * @param low    size of the first channel's chunks, in bytes
     * @param middle size of the chunks of each channel between the first and the last, in bytes
     * @param high   size of the last channel's chunks, in bytes
     */
    public void chunks(Protocol protocol, long low, long middle, long high, int warps) {
        Words.LONG.set(segment, CHUNK_GRAINS, grains(protocol, low) | grains(protocol, middle) << GRAINS_BITS
                | grains(protocol, high) << 2 * GRAINS_BITS);
        segment.set(ValueLayout.JAVA_BYTE, WARPS, (byte) warps);
    }

    private static long grains(Protocol protocol, long bytes) {
        return Math.min(bytes / grainBytes(protocol), GRAINS_MASK);
    }

    /**
     * {@return the size of a grain of a protocol in bytes ({@code ncclProtoGrainSize}); chunk sizes are stored in
     * grains}
     */
    public static int grainBytes(Protocol protocol) {
        return switch (protocol) {
            case LL -> 16;
            case LL128 -> 1920;
            case SIMPLE -> 512;
        };
    }

    /**
     * {@return the size of a channel's chunks in bytes; 0 if the work item does not contain the size, or if the size is
     * less than a grain}
     */
    public long chunkBytes(Protocol protocol, int channel) {
        int place = channel == channelLow() ? 0 : channel == channelHigh() ? 2 : 1;
        return ((long) Words.LONG.get(segment, CHUNK_GRAINS) >>> place * GRAINS_BITS & GRAINS_MASK)
                * grainBytes(protocol);
    }

    /** {@return the number of warps of a block; 0 if the work item does not contain the number} */
    public int warps() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, WARPS));
    }

    /**
     * Sets the buffers, the root, the argument of the reduction, and the flags.
     *
     * @param send     address of the input
     * @param receive  address of the output
     * @param root     root rank; this rank itself if the operation has no root
     * @param argument argument of the reduction, as raw bits
     * @param flags    combination of {@link #NETWORK_REGISTERED}, {@link #REGISTERED}, {@link #PROFILED}
     */
    public void set(long send, long receive, int root, long argument, int flags) {
        Words.LONG.set(segment, SEND_BUFFER, send);
        Words.LONG.set(segment, RECEIVE_BUFFER, receive);
        Words.INT.set(segment, ROOT, root);
        Words.LONG.set(segment, ARGUMENT, argument);
        flags(flags);
    }

    /**
     * Marks the buffers that the devices of peers may read directly. The mark is a value other than 0 in
     * {@code sendbuffRmtAddrs} or {@code recvbuffRmtAddrs}. Peers read at another address, which depends on the
     * connection.
     *
     * @param input  whether peers may read the input buffer
     * @param output whether peers may read the output buffer
     */
    public void read(boolean input, boolean output) {
        Words.LONG.set(segment, SEND_REMOTE, input ? sendBuffer() : 0L);
        Words.LONG.set(segment, RECEIVE_REMOTE, output ? receiveBuffer() : 0L);
        flags(flags() | REGISTERED);
    }

    /** {@return whether the devices of peers may read the input buffer directly} */
    public boolean isInputRead() {
        return (flags() & REGISTERED) != 0 && (long) Words.LONG.get(segment, SEND_REMOTE) != 0;
    }

    /** {@return whether the devices of peers may read the output buffer directly} */
    public boolean isOutputRead() {
        return (flags() & REGISTERED) != 0 && (long) Words.LONG.get(segment, RECEIVE_REMOTE) != 0;
    }

    /** Sets the flags, and leaves the other fields unchanged. */
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

    /** {@return the number of elements of each channel between the first and the last} */
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

    /** {@return the total number of elements of all channels} */
    public long count() {
        // `between` is -1 for a single channel, and the counts of the middle and the last channel are then 0.
        int between = channelHigh() - channelLow() - 1;
        return countLow() + countMiddle() * between + countHigh();
    }

    /** {@return the index of a channel's first element among the elements of the operation} */
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
