package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;

/**
 * The layout of a connection's host memory if the connection does not share its buffers. Three buffers of eight slots
 * each come first, then the control memory, without gaps.
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
 * Step {@code s} uses slot {@code s % 8}. A slice of the Simple protocol may have two steps. Its data then begins in
 * the first step's slot and may extend to the end of the next slot, which always follows directly.
 *
 * <p>
 * NCCL uses this layout if host memory is used for all buffers (no GPUDirect RDMA) and the buffers are not shared
 * ({@code NCCL_NET_SHARED_BUFFERS=0}). Facts: NCCL 2.28 {@code transport/net.cc}, {@code init.cc}; checked on hardware.
 *
 * @param llBytes     size of the LL buffer, with whole lines in each slot
 * @param ll128Bytes  size of the LL128 buffer, with whole lines in each slot
 * @param simpleBytes size of the Simple buffer, a multiple of 8
 */
public record ConnectionLayout(long llBytes, long ll128Bytes, long simpleBytes) {
    /** Number of slots of a buffer. */
    public static final int SLOTS = device_h.NCCL_STEPS();
    /** The sizes that NCCL uses unless NCCL_LL_BUFFSIZE, NCCL_LL128_BUFFSIZE or NCCL_BUFFSIZE override them. */
    public static final ConnectionLayout DEFAULT = new ConnectionLayout(device_h.DEFAULT_LL_BUFFSIZE(),
            device_h.DEFAULT_LL128_BUFFSIZE(), device_h.DEFAULT_BUFFSIZE());

    /**
     * Checks the sizes.
     *
     * @throws IllegalArgumentException if a slot would not be a whole number of lines, or of bytes for protocol Simple
     */
    public ConnectionLayout {
        requireSlots("LL", llBytes, LLLine.BYTES);
        requireSlots("LL128", ll128Bytes, LL128Line.BYTES);
        requireSlots("Simple", simpleBytes, 1);
    }

    private static void requireSlots(String name, long bytes, long unit) {
        long multiple = SLOTS * unit;
        // NCCL stores these sizes in an int.
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

    /** {@return the offset of a buffer} */
    public long bufferOffset(Protocol protocol) {
        return switch (protocol) {
            case LL -> 0;
            case LL128 -> llBytes;
            case SIMPLE -> llBytes + ll128Bytes;
        };
    }

    /** {@return the size of a slot, including the flags of lines} */
    public long slotBytes(Protocol protocol) {
        return bufferBytes(protocol) / SLOTS;
    }

    /** {@return the offset of a step's slot} */
    public long slotOffset(Protocol protocol, long step) {
        return bufferOffset(protocol) + slot(step) * slotBytes(protocol);
    }

    /** {@return the offset of {@code ncclSendMem}} */
    public long sendMemOffset() {
        return llBytes + ll128Bytes + simpleBytes;
    }

    /** {@return the offset of {@code ncclRecvMem}} */
    public long recvMemOffset() {
        return sendMemOffset() + SendMem.BYTES;
    }

    /** {@return the size of the buffers and the control memory together} */
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
