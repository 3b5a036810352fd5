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
 * each their own count. (NCCL says a chunk for each of the three as well, 21 bits in a protocol's grains.)
 *
 * <p>
 * All accesses are plain: the kernel's launch orders them. Facts: NCCL 2.28 {@code device.h}, {@code enqueue.cc}.
 */
public final class CollectiveWork {
    /** The struct's size. */
    public static final int BYTES = (int) ncclDevWorkColl.sizeof();
    /** Flag: elements are passed on in memory that is registered with the network. */
    public static final int NETWORK_REGISTERED = device_h.MILLRACE_COLL_NET_REGISTERED();
    /** Flag: a host reads the work counters of this operation. */
    public static final int PROFILED = device_h.MILLRACE_COLL_PROFILED();

    private static final long CHANNEL_LOW = offset(groupElement("channelLo"));
    private static final long CHANNEL_HIGH = offset(groupElement("channelHi"));
    private static final long FLAGS = offset(groupElement("collFlags"));
    private static final long ROOT = offset(groupElement("root"));
    private static final long RECEIVE_BUFFER = offset(groupElement("recvbuff"));
    private static final long SEND_BUFFER = offset(groupElement("sendbuff"));
    private static final long COUNT_LOW =
            offset(groupElement("schedule"), groupElement("cbd"), groupElement("countLo"));
    private static final long COUNT_MIDDLE =
            offset(groupElement("schedule"), groupElement("cbd"), groupElement("countMid"));
    private static final long COUNT_HIGH =
            offset(groupElement("schedule"), groupElement("cbd"), groupElement("countHi"));
    private static final long ARGUMENT = offset(groupElement("redOpArg"));

    private final MemorySegment segment;

    private CollectiveWork(MemorySegment segment) {
        this.segment = segment;
    }

    /**
     * {@return a view of an item}
     *
     * @param segment {@link #BYTES} bytes or more
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

    /** {@return the first channel} */
    public int channelLow() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, CHANNEL_LOW));
    }

    /**
     * Sets the first channel.
     *
     * @param value the new value
     */
    public void channelLow(int value) {
        segment.set(ValueLayout.JAVA_BYTE, CHANNEL_LOW, (byte) value);
    }

    /** {@return the last channel} */
    public int channelHigh() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, CHANNEL_HIGH));
    }

    /**
     * Sets the last channel.
     *
     * @param value the new value
     */
    public void channelHigh(int value) {
        segment.set(ValueLayout.JAVA_BYTE, CHANNEL_HIGH, (byte) value);
    }

    /** {@return the flags} */
    public int flags() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, FLAGS));
    }

    /**
     * Sets the flags.
     *
     * @param value the new value
     */
    public void flags(int value) {
        segment.set(ValueLayout.JAVA_BYTE, FLAGS, (byte) value);
    }

    /** {@return the root rank; the rank itself where an operation has none} */
    public int root() {
        return (int) Words.INT.get(segment, ROOT);
    }

    /**
     * Sets the root rank; the rank itself where an operation has none.
     *
     * @param value the new value
     */
    public void root(int value) {
        Words.INT.set(segment, ROOT, value);
    }

    /** {@return the address of the output} */
    public long receiveBuffer() {
        return (long) Words.LONG.get(segment, RECEIVE_BUFFER);
    }

    /**
     * Sets the address of the output.
     *
     * @param value the new value
     */
    public void receiveBuffer(long value) {
        Words.LONG.set(segment, RECEIVE_BUFFER, value);
    }

    /** {@return the address of the input} */
    public long sendBuffer() {
        return (long) Words.LONG.get(segment, SEND_BUFFER);
    }

    /**
     * Sets the address of the input.
     *
     * @param value the new value
     */
    public void sendBuffer(long value) {
        Words.LONG.set(segment, SEND_BUFFER, value);
    }

    /** {@return the first channel's elements} */
    public long countLow() {
        return (long) Words.LONG.get(segment, COUNT_LOW);
    }

    /**
     * Sets the first channel's elements.
     *
     * @param value the new value
     */
    public void countLow(long value) {
        Words.LONG.set(segment, COUNT_LOW, value);
    }

    /** {@return a middle channel's elements} */
    public long countMiddle() {
        return (long) Words.LONG.get(segment, COUNT_MIDDLE);
    }

    /**
     * Sets a middle channel's elements.
     *
     * @param value the new value
     */
    public void countMiddle(long value) {
        Words.LONG.set(segment, COUNT_MIDDLE, value);
    }

    /** {@return the last channel's elements} */
    public long countHigh() {
        return (long) Words.LONG.get(segment, COUNT_HIGH);
    }

    /**
     * Sets the last channel's elements.
     *
     * @param value the new value
     */
    public void countHigh(long value) {
        Words.LONG.set(segment, COUNT_HIGH, value);
    }

    /** {@return the reduction's argument, as raw bits} */
    public long reductionArgument() {
        return (long) Words.LONG.get(segment, ARGUMENT);
    }

    /**
     * Sets the reduction's argument, as raw bits.
     *
     * @param value the new value
     */
    public void reductionArgument(long value) {
        Words.LONG.set(segment, ARGUMENT, value);
    }

    /** {@return the elements of all channels} */
    public long count() {
        int between = channelHigh() - channelLow() - 1; // -1 on a single channel, whose middle and high counts are 0
        return countLow() + countMiddle() * between + countHigh();
    }

    /**
     * {@return a channel's first element}
     *
     * @param channel the channel
     */
    public long firstElement(int channel) {
        if (channel == channelLow()) {
            return 0;
        }
        return countLow() + (channel - channelLow() - 1) * countMiddle();
    }

    /**
     * {@return how many elements a channel has}
     *
     * @param channel the channel
     */
    public long elements(int channel) {
        return channel == channelLow() ? countLow() : channel == channelHigh() ? countHigh() : countMiddle();
    }

    private static long offset(PathElement... path) {
        return ncclDevWorkColl.layout().byteOffset(path);
    }
}
