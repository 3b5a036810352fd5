package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;

/**
 * How one connection's host memory lies when it has buffers of its own: three buffers of eight slots each, then the
 * control memory, without gaps.
 *
 * <pre>
 *    0             llBytes        + ll128Bytes        + simpleBytes    + 4096      + 4096
 *    +-------------+--------------+-------------------+----------------+-----------+
 *    | LL          | LL128        | SIMPLE            | ncclSendMem    |ncclRecvMem|
 *    | slots 0..7  | slots 0..7   | slots 0..7        |                |           |
 *    +-------------+--------------+-------------------+----------------+-----------+
 * </pre>
 *
 * <p>
 * Step {@code s} uses slot {@code s % 8}. A slice of the Simple protocol may be of two steps: its data then begins in
 * the first step's slot and may reach to the end of the next one, which always lies behind it.
 *
 * <p>
 * NCCL lays memory out so where host memory is used for all buffers (no GPUDirect RDMA) and they are not shared
 * ({@code NCCL_NET_SHARED_BUFFERS=0}). Facts: NCCL 2.28 {@code transport/net.cc}, {@code init.cc}; checked on hardware.
 *
 * @param llBytes     size of the LL buffer, whole lines in each slot
 * @param ll128Bytes  size of the LL128 buffer, whole lines in each slot
 * @param simpleBytes size of the Simple buffer, a multiple of 8
 */
public record ConnectionLayout(long llBytes, long ll128Bytes, long simpleBytes) {
    /** Slots of a buffer. */
    public static final int SLOTS = device_h.NCCL_STEPS();
    /** The sizes NCCL uses unless NCCL_LL_BUFFSIZE, NCCL_LL128_BUFFSIZE or NCCL_BUFFSIZE say otherwise. */
    public static final ConnectionLayout DEFAULT = new ConnectionLayout(device_h.DEFAULT_LL_BUFFSIZE(),
            device_h.DEFAULT_LL128_BUFFSIZE(), device_h.DEFAULT_BUFFSIZE());

    /**
     * Checks the sizes.
     *
     * @throws IllegalArgumentException if a slot would not be a whole number of lines, or of bytes
     */
    public ConnectionLayout {
        requireSlots("LL", llBytes, LLLine.BYTES);
        requireSlots("LL128", ll128Bytes, LL128Line.BYTES);
        requireSlots("Simple", simpleBytes, 1);
    }

    private static void requireSlots(String name, long bytes, long unit) {
        long multiple = SLOTS * unit;
        // NCCL keeps these sizes in an int.
        if (bytes <= 0 || bytes > Integer.MAX_VALUE || bytes % multiple != 0) {
            throw new IllegalArgumentException("the %s buffer cannot have %d bytes: choose a multiple of %d up to %d"
                    .formatted(name, bytes, multiple, Integer.MAX_VALUE / multiple * multiple));
        }
    }

    /** {@return the slot of a step} */
    public static int slot(long step) {
        return (int) (step & SLOTS - 1);
    }

    /** {@return the size of a buffer} */
    public long bufferBytes(Protocol protocol) {
        return switch (protocol) {
            case LL -> llBytes;
            case LL128 -> ll128Bytes;
            case SIMPLE -> simpleBytes;
        };
    }

    /** {@return where a buffer begins} */
    public long bufferOffset(Protocol protocol) {
        return switch (protocol) {
            case LL -> 0;
            case LL128 -> llBytes;
            case SIMPLE -> llBytes + ll128Bytes;
        };
    }

    /** {@return the size of a slot, lines' flags included} */
    public long slotBytes(Protocol protocol) {
        return bufferBytes(protocol) / SLOTS;
    }

    /** {@return where a step's slot begins} */
    public long slotOffset(Protocol protocol, long step) {
        return bufferOffset(protocol) + slot(step) * slotBytes(protocol);
    }

    /** {@return where {@code ncclSendMem} begins} */
    public long sendMemOffset() {
        return llBytes + ll128Bytes + simpleBytes;
    }

    /** {@return where {@code ncclRecvMem} begins} */
    public long recvMemOffset() {
        return sendMemOffset() + SendMem.BYTES;
    }

    /** {@return the size of all of it} */
    public long totalBytes() {
        return recvMemOffset() + RecvMem.BYTES;
    }

    /** {@return the send half of a connection} */
    public SendMem sendMem(MemorySegment connection) {
        return SendMem.of(connection.asSlice(sendMemOffset(), SendMem.BYTES));
    }

    /** {@return the receive half of a connection} */
    public RecvMem recvMem(MemorySegment connection) {
        return RecvMem.of(connection.asSlice(recvMemOffset(), RecvMem.BYTES));
    }
}
