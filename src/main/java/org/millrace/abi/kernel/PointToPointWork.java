package org.millrace.abi.kernel;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevWorkP2p;
import org.millrace.foreign.Words;

/**
 * {@code ncclDevWorkP2p}: a send and a receive that run at the same time. One of the two may be absent.
 *
 * <pre>
 *    0          8          16         24         32        36        40    41    42   43   44   45   46    48
 *    +----------+----------+----------+----------+---------+---------+-----+-----+----+----+----+----+-----+
 *    | sendAddr | recvAddr | sendBytes| recvBytes| sendRank| recvRank|nP2p |base |nSnd|nRcv|schk|rchk|flags|
 *    +----------+----------+----------+----------+---------+---------+-----+-----+----+----+----+----+-----+
 * </pre>
 *
 * <p>
 * The bytes of a send or a receive are divided into parts, one for each channel. A channel computes the number of its
 * part from the channel of the first part and from the number of channels, a power of two.
 *
 * <p>
 * All accesses are plain, because the launch of the kernel orders the host's stores before the kernel's loads. Facts:
 * NCCL 2.28 {@code device.h}, {@code enqueue.cc}, {@code bitops.h}.
 */
public final class PointToPointWork {
    public static final int BYTES = (int) ncclDevWorkP2p.sizeof();
    /** Flag: the send uses protocol LL. */
    public static final int SEND_LL = device_h.MILLRACE_P2P_SEND_LL();
    /** Flag: the receive uses protocol LL. */
    public static final int RECEIVE_LL = device_h.MILLRACE_P2P_RECV_LL();
    /** Flag: the sent data lies in memory that is registered with the network. */
    public static final int SEND_REGISTERED = device_h.MILLRACE_P2P_SEND_NET_REGISTERED();
    /** Flag: the received data lies in memory that is registered with the network. */
    public static final int RECEIVE_REGISTERED = device_h.MILLRACE_P2P_RECV_NET_REGISTERED();
    /** Flag: the sent data lies in memory that the peer's device may read. */
    public static final int SEND_READ = device_h.MILLRACE_P2P_SEND_IPC_REGISTERED();
    /** Flag: the host reads the {@link WorkCounters} of this operation. */
    public static final int PROFILED = device_h.MILLRACE_P2P_PROFILED();

    /** Rank number that marks an absent send or receive. */
    public static final int NO_RANK = -1;

    /** Alignment of the parts of a send or a receive, in bytes. Each part begins at a multiple of this number. */
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
     * {@return a view of a work item}
     *
     * @throws IllegalArgumentException if the segment is shorter than a work item
     */
    public static PointToPointWork of(MemorySegment segment) {
        if (segment.byteSize() < BYTES) {
            throw new IllegalArgumentException(
                    "ncclDevWorkP2p is " + BYTES + " bytes, but the segment has " + segment.byteSize());
        }
        return new PointToPointWork(segment);
    }

    /** {@return the memory of the work item} */
    public MemorySegment segment() {
        return segment;
    }

    /**
     * Sets the fields that are common to send and receive.
     *
     * @param channels number of the communicator's channels for sends and receives, a power of two
     * @param flags    combination of flags, for instance {@link #SEND_LL}
     */
    public void set(int channels, int flags) {
        segment.set(ValueLayout.JAVA_BYTE, CHANNELS, (byte) channels);
        segment.set(ValueLayout.JAVA_BYTE, FLAGS, (byte) flags);
    }

    /** Sets the channel that moves the first part. */
    public void channelBase(int channel) {
        segment.set(ValueLayout.JAVA_BYTE, CHANNEL_BASE, (byte) channel);
    }

    /**
     * Sets the data to send.
     *
     * @param rank    rank of the receiver; {@link #NO_RANK} if nothing is sent
     * @param address address of the data
     * @param bytes   number of bytes
     * @param parts   number of channels that send a part; 0 if nothing is sent
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
     * @param rank    rank of the sender; {@link #NO_RANK} if nothing is received
     * @param address address of the destination
     * @param bytes   number of bytes
     * @param parts   number of channels that receive a part; 0 if nothing is received
     */
    public void receive(int rank, long address, long bytes, int parts) {
        Words.INT.set(segment, RECEIVE_RANK, rank);
        Words.LONG.set(segment, RECEIVE_ADDRESS, address);
        Words.LONG.set(segment, RECEIVE_BYTES, bytes);
        segment.set(ValueLayout.JAVA_BYTE, RECEIVE_CHANNELS, (byte) parts);
    }

    /**
     * Sets the chunk sizes. NCCL stores each size in eight bits, with four significant bits. A size that has no such
     * representation is rounded down.
     *
     * @param send    size of a chunk of the send in bytes; 0 if nothing is sent
     * @param receive size of a chunk of the receive in bytes; 0 if nothing is received
     */
    public void chunks(long send, long receive) {
        segment.set(ValueLayout.JAVA_BYTE, SEND_CHUNK, (byte) encode(send));
        segment.set(ValueLayout.JAVA_BYTE, RECEIVE_CHUNK, (byte) encode(receive));
    }

    /** {@return the size of a chunk of the send in bytes; 0 if the work item does not contain the size} */
    public long sendChunkBytes() {
        return decode(Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, SEND_CHUNK)));
    }

    /** {@return the size of a chunk of the receive in bytes; 0 if the work item does not contain the size} */
    public long receiveChunkBytes() {
        return decode(Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, RECEIVE_CHUNK)));
    }

    /**
     * Encodes a size in eight bits: an exponent in the upper bits, and a mantissa of three bits with an implicit
     * leading one. Sizes below 8 are encoded as themselves.
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

    /** {@return the address of the destination of the received data} */
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

    /** {@return the number of the communicator's channels for sends and receives, a power of two} */
    public int channels() {
        return Byte.toUnsignedInt(segment.get(ValueLayout.JAVA_BYTE, CHANNELS));
    }

    /** {@return the channel that moves the first part} */
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

    /** {@return the number of the part that a channel moves, the same for the send and the receive} */
    public int part(int channel) {
        return channel - channelBase() & channels() - 1;
    }

    /**
     * {@return the offset of a part of a send or a receive, in bytes}
     *
     * @param parts number of all parts
     * @param part  number of the part; {@code parts} for the end of the last part
     * @param bytes size of the whole send or receive
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
