package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevWorkP2p;

/**
 * {@code ncclDevWorkP2p}: a send and a receive that run at the same time. Either may be absent.
 *
 * <pre>
 *    0          8          16         24         32        36        40    41    42   43   44   45   46    48
 *    +----------+----------+----------+----------+---------+---------+-----+-----+----+----+----+----+-----+
 *    | sendAddr | recvAddr | sendBytes| recvBytes| sendRank| recvRank|nP2p |base |nSnd|nRcv|schk|rchk|flags|
 *    +----------+----------+----------+----------+---------+---------+-----+-----+----+----+----+----+-----+
 * </pre>
 *
 * <p>
 * The bytes of a transfer are divided into parts, one for each channel. A channel computes its part from the first
 * channel and the number of channels, which is a power of two.
 *
 * <p>
 * All accesses are plain, because the kernel's launch orders them. Facts: NCCL 2.28 {@code device.h},
 * {@code enqueue.cc}, {@code bitops.h}.
 */
public final class PointToPointWork {
    public static final int BYTES = (int) ncclDevWorkP2p.sizeof();
    /** Flag: the sent data travels in protocol LL. */
    public static final int SEND_LL = device_h.MILLRACE_P2P_SEND_LL();
    /** Flag: the received data travels in protocol LL. */
    public static final int RECEIVE_LL = device_h.MILLRACE_P2P_RECV_LL();
    /** Flag: the sent data lies in memory that is registered with the network. */
    public static final int SEND_REGISTERED = device_h.MILLRACE_P2P_SEND_NET_REGISTERED();
    /** Flag: the received data lies in memory that is registered with the network. */
    public static final int RECEIVE_REGISTERED = device_h.MILLRACE_P2P_RECV_NET_REGISTERED();
    /** Flag: the sent data lies in memory that the peer's device may read. */
    public static final int SEND_READ = device_h.MILLRACE_P2P_SEND_IPC_REGISTERED();
    /** Flag: a host reads the work counters of this operation. */
    public static final int PROFILED = device_h.MILLRACE_P2P_PROFILED();

    /** Rank number that marks an absent send or receive. */
    public static final int NOBODY = -1;

    /** Parts of a transfer begin at multiples of this number of bytes. */
    private static final long PART_ALIGNMENT = 4096;

    private static final long SEND_ADDRESS = offset(groupElement("sendAddr"));
    private static final long RECEIVE_ADDRESS = offset(groupElement("recvAddr"));
    private static final long SEND_BYTES = offset(groupElement("sendBytes"));
    private static final long RECEIVE_BYTES = offset(groupElement("recvBytes"));
    private static final long SEND_RANK = offset(groupElement("sendRank"));
    private static final long RECEIVE_RANK = offset(groupElement("recvRank"));
    private static final long CHANNELS = offset(groupElement("nP2pChannels"));
    private static final long CHANNEL_BASE = offset(groupElement("channelBase"));
    private static final long SEND_CHANNELS = offset(groupElement("nSendChannels"));
    private static final long RECEIVE_CHANNELS = offset(groupElement("nRecvChannels"));
    private static final long SEND_CHUNK = offset(groupElement("sendChunkSize_u32fp8"));
    private static final long RECEIVE_CHUNK = offset(groupElement("recvChunkSize_u32fp8"));
    private static final int MANTISSA_BITS = 3;
    private static final long FLAGS = offset(groupElement("p2pFlags"));

    private final MemorySegment segment;

    private PointToPointWork(MemorySegment segment) {
        this.segment = segment;
    }

    /**
     * {@return a view of an item}
     *
     * @throws IllegalArgumentException if the segment is shorter than an item
     */
    public static PointToPointWork of(MemorySegment segment) {
        if (segment.byteSize() < BYTES) {
            throw new IllegalArgumentException(
                    "ncclDevWorkP2p is " + BYTES + " bytes, but the segment has " + segment.byteSize());
        }
        return new PointToPointWork(segment);
    }

    /** {@return the bytes of the item} */
    public MemorySegment segment() {
        return segment;
    }

    /**
     * Sets the fields that are common to send and receive.
     *
     * @param channels number of the communicator's channels for transfers, a power of two
     * @param flags    for instance {@link #SEND_LL}
     */
    public void set(int channels, int flags) {
        segment.set(ValueLayout.JAVA_BYTE, CHANNELS, (byte) channels);
        segment.set(ValueLayout.JAVA_BYTE, FLAGS, (byte) flags);
    }

    /** Sets the channel of the first part. */
    public void channelBase(int channel) {
        segment.set(ValueLayout.JAVA_BYTE, CHANNEL_BASE, (byte) channel);
    }

    /**
     * Sets the data to send.
     *
     * @param rank  rank of the receiver; {@link #NOBODY} if nothing is sent
     * @param parts number of channels that send a part; 0 if nothing is sent
     */
    public void send(int rank, long address, long bytes, int parts) {
        Words.INT.set(segment, SEND_RANK, rank);
        Words.LONG.set(segment, SEND_ADDRESS, address);
        Words.LONG.set(segment, SEND_BYTES, bytes);
        segment.set(ValueLayout.JAVA_BYTE, SEND_CHANNELS, (byte) parts);
    }

    /**
     * Sets the destination of the received data.
     *
     * @param rank  rank of the sender; {@link #NOBODY} if nothing is received
     * @param parts number of channels that receive a part; 0 if nothing is received
     */
    public void receive(int rank, long address, long bytes, int parts) {
        Words.INT.set(segment, RECEIVE_RANK, rank);
        Words.LONG.set(segment, RECEIVE_ADDRESS, address);
        Words.LONG.set(segment, RECEIVE_BYTES, bytes);
        segment.set(ValueLayout.JAVA_BYTE, RECEIVE_CHANNELS, (byte) parts);
    }

    /**
     * Sets the chunk sizes. They are rounded down to values that NCCL's eight bits can represent, which have four
     * significant bits.
     *
     * @param send    bytes of a chunk that is sent; 0 if nothing is sent
     * @param receive bytes of a chunk that is received; 0 if nothing is received
     */
    public void chunks(long send, long receive) {
        segment.set(ValueLayout.JAVA_BYTE, SEND_CHUNK, (byte) encode(send));
        segment.set(ValueLayout.JAVA_BYTE, RECEIVE_CHUNK, (byte) encode(receive));
    }

    /** {@return the bytes of a chunk that is sent; 0 if the item does not contain the size} */
    public long sendChunkBytes() {
        return decode(Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, SEND_CHUNK)));
    }

    /** {@return the bytes of a chunk that is received; 0 if the item does not contain the size} */
    public long receiveChunkBytes() {
        return decode(Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, RECEIVE_CHUNK)));
    }

    /**
     * Returns an exponent above a mantissa of three bits with an implicit leading one. Numbers below 8 are encoded as
     * they are.
     */
    static int encode(long bytes) {
        int shift = Long.SIZE - 1 - MANTISSA_BITS - Long.numberOfLeadingZeros(bytes | 1);
        return shift < 0 ? (int) bytes
                : shift + 1 << MANTISSA_BITS | (int) (bytes >>> shift) & (1 << MANTISSA_BITS) - 1;
    }

    static long decode(int code) {
        int exponent = code >>> MANTISSA_BITS;
        long mantissa = code & (1 << MANTISSA_BITS) - 1;
        return exponent == 0 ? mantissa : (mantissa | 1 << MANTISSA_BITS) << exponent - 1;
    }

    /** {@return the address of the data to send} */
    public long sendAddress() {
        return (long) Words.LONG.get(segment, SEND_ADDRESS);
    }

    /** {@return the address of the data to receive} */
    public long receiveAddress() {
        return (long) Words.LONG.get(segment, RECEIVE_ADDRESS);
    }

    /** {@return the number of bytes to send} */
    public long sendBytes() {
        return (long) Words.LONG.get(segment, SEND_BYTES);
    }

    /** {@return the number of bytes to receive} */
    public long receiveBytes() {
        return (long) Words.LONG.get(segment, RECEIVE_BYTES);
    }

    /** {@return the rank of the receiver} */
    public int sendRank() {
        return (int) Words.INT.get(segment, SEND_RANK);
    }

    /** {@return the rank of the sender} */
    public int receiveRank() {
        return (int) Words.INT.get(segment, RECEIVE_RANK);
    }

    /** {@return the number of the communicator's channels for transfers, a power of two} */
    public int channels() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, CHANNELS));
    }

    /** {@return the channel of the first part} */
    public int channelBase() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, CHANNEL_BASE));
    }

    /** {@return the number of parts of the sent data; 0 if nothing is sent} */
    public int sendChannels() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, SEND_CHANNELS));
    }

    /** {@return the number of parts of the received data; 0 if nothing is received} */
    public int receiveChannels() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, RECEIVE_CHANNELS));
    }

    public int flags() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, FLAGS));
    }

    /** {@return the number of the part of the transfers that a channel moves} */
    public int part(int channel) {
        return channel - channelBase() & channels() - 1;
    }

    /**
     * {@return the offset of a part}
     *
     * @param part number of the part; {@code parts} for the end of the last one
     */
    public static long partBegin(int parts, int part, long bytes) {
        long each = (bytes + parts - 1) / parts;
        long aligned = (each + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
        return Math.min(part * aligned, bytes);
    }

    private static long offset(PathElement... path) {
        return ncclDevWorkP2p.layout().byteOffset(path);
    }
}
