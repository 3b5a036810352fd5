package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;

/**
 * The layout of a connection's host memory if the connection does not share its buffers. Three buffers of eight slots
 * each come first. The control memory follows without a gap.
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
 * Step {@code s} uses slot {@code s % 8}. A slice of the Simple protocol may have two steps. The slice's data then
 * begins in the first step's slot and may extend to the end of the next slot, which always follows directly.
 *
 * <p>
 * NCCL uses this layout if host memory is used for all buffers (no GPUDirect RDMA) and the buffers are not shared
 * ({@code NCCL_NET_SHARED_BUFFERS=0}). Facts: NCCL 2.28 {@code transport/net.cc}, {@code init.cc}; checked on hardware.
 *
 * @param llBytes     size of the LL buffer in bytes; each slot contains whole lines
 * @param ll128Bytes  size of the LL128 buffer in bytes; each slot contains whole lines
 * @param simpleBytes size of the Simple buffer in bytes, a multiple of 8
 * @param ll128Line   line of protocol LL128
 */
public record ConnectionLayout(long llBytes, long ll128Bytes, long simpleBytes, LL128Line ll128Line) {
    /** Number of slots of each buffer. */
    public static final int SLOTS = device_h.NCCL_STEPS();
    /** The sizes that NCCL uses unless NCCL_LL_BUFFSIZE, NCCL_LL128_BUFFSIZE or NCCL_BUFFSIZE override them. */
    public static final ConnectionLayout DEFAULT = new ConnectionLayout(device_h.DEFAULT_LL_BUFFSIZE(),
            device_h.DEFAULT_LL128_BUFFSIZE(), device_h.DEFAULT_BUFFSIZE());

    /**
     * Checks the sizes.
     *
     * @throws IllegalArgumentException if the slots of LL or LL128 would not contain whole lines, or if the slots of
     *                                  Simple would not contain whole bytes
     */
    public ConnectionLayout {
        requireSlots("LL", llBytes, LLLine.BYTES);
        requireSlots("LL128", ll128Bytes, ll128Line.bytes());
        requireSlots("Simple", simpleBytes, 1);
    }

    /** Creates a layout in which the lines of protocol LL128 are {@link LL128Line#NCCL}, not those of RCCL. */
    public ConnectionLayout(long llBytes, long ll128Bytes, long simpleBytes) {
        this(llBytes, ll128Bytes, simpleBytes, LL128Line.NCCL);
    }

    private static void requireSlots(String name, long bytes, long unit) {
        long multiple = SLOTS * unit;
        // NCCL stores the sizes of buffers in an int.
        if (bytes <= 0 || bytes > Integer.MAX_VALUE || bytes % multiple != 0) {
            throw new IllegalArgumentException("the %s buffer cannot have %d bytes: choose a multiple of %d up to %d"
                    .formatted(name, bytes, multiple, Integer.MAX_VALUE / multiple * multiple));
        }
    }

    /** {@return the index of the slot that a step uses} */
    public static int slot(long step) {
        return (int) (step & SLOTS - 1);
    }

    /** {@return the size of the buffer of a protocol in bytes} */
    public long bufferBytes(Protocol protocol) {
        return switch (protocol) {
            case LL -> llBytes;
            case LL128 -> ll128Bytes;
            case SIMPLE -> simpleBytes;
        };
    }

    /** {@return the offset of the buffer of a protocol in bytes} */
    public long bufferOffset(Protocol protocol) {
        return switch (protocol) {
            case LL -> 0;
            case LL128 -> llBytes;
            case SIMPLE -> llBytes + ll128Bytes;
        };
    }

    /** {@return the size of a slot of a protocol in bytes, including the flags of lines} */
    public long slotBytes(Protocol protocol) {
        return bufferBytes(protocol) / SLOTS;
    }

    /** {@return the offset of the slot that a step uses, in bytes} */
    public long slotOffset(Protocol protocol, long step) {
        return bufferOffset(protocol) + slot(step) * slotBytes(protocol);
    }

    /** {@return the offset of {@code ncclSendMem} in bytes} */
    public long sendMemOffset() {
        return llBytes + ll128Bytes + simpleBytes;
    }

    /** {@return the offset of {@code ncclRecvMem} in bytes} */
    public long recvMemOffset() {
        return sendMemOffset() + SendMem.BYTES;
    }

    /** {@return the size of the buffers and the control memory together, in bytes} */
    public long totalBytes() {
        return recvMemOffset() + RecvMem.BYTES;
    }

    /** {@return the half of the control memory that contains head} */
    public SendMem sendMem(MemorySegment connection) {
        return SendMem.of(connection.asSlice(sendMemOffset(), SendMem.BYTES));
    }

    /** {@return the half of the control memory that contains tail and connFifo} */
    public RecvMem recvMem(MemorySegment connection) {
        return RecvMem.of(connection.asSlice(recvMemOffset(), RecvMem.BYTES));
    }
}
