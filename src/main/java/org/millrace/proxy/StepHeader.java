package org.millrace.proxy;

import org.millrace.net.FrameHeader;
import org.millrace.proxy.spi.OperationSignature;
import org.millrace.proxy.spi.ProxyOp;

/**
 * Layout of the words of a frame's header between two proxies.
 *
 * <pre>
 *  word 0   step        first step of the frame. Its slot contains the payload
 *  word 1   end         first step after the frame
 *  word 2   protocol    bits 0..15: NCCL's number of the protocol: 0 LL, 1 LL128, 2 Simple
 *                       bits 16..31: number of the member, if several connections share one network connection
 *                       bits 32..63: checksum of the payload; 0 if the sender computes no checksums
 *  word 3   opCount     number of the operation. Without announced operations: 1 if the device posted a size for the
 *                       first step, 0 if the frame only forwards tail
 *  word 4   signature   signature of the operation
 *  word 5   count       number of elements of the operation
 * </pre>
 */
final class StepHeader {

    private static final int STEP = 0;
    private static final int END = 1;
    static final int PROTOCOL = 2;
    private static final int OP_COUNT = 3;
    private static final int SIGNATURE = 4;
    private static final int COUNT = 5;
    private static final int MEMBER_SHIFT = 16;
    private static final int PART = 0xFFFF;

    private StepHeader() {}

    static void step(FrameHeader header, long step, long end, int protocol) {
        header.word(STEP, step);
        header.word(END, end);
        header.word(PROTOCOL, Integer.toUnsignedLong(protocol));
    }

    static void posted(FrameHeader header, boolean posted) {
        header.word(OP_COUNT, posted ? 1 : 0);
    }

    /**
     * {@return whether the device posted a size for the frame's first step; false if the frame only forwards tail}
     * Valid only for connections without announced operations.
     */
    static boolean posted(FrameHeader header) {
        return header.word(OP_COUNT) != 0;
    }

    static void operation(FrameHeader header, ProxyOp op) {
        header.word(OP_COUNT, op.opCount());
        header.word(SIGNATURE, op.signature());
        header.word(COUNT, op.count());
    }

    /** {@return the first step of the frame; the value comes from the peer and is not checked} */
    static long step(FrameHeader header) {
        return header.word(STEP);
    }

    /** {@return the first step after the frame; the value comes from the peer and is not checked} */
    static long end(FrameHeader header) {
        return header.word(END);
    }

    /** {@return NCCL's number of the protocol; the value comes from the peer and is not checked} */
    static long protocol(FrameHeader header) {
        return header.word(PROTOCOL) & PART;
    }

    /** Sets the number of the member that sends the frame, if several connections share one network connection. */
    static void member(FrameHeader header, int member) {
        header.word(PROTOCOL, header.word(PROTOCOL) & ~((long) PART << MEMBER_SHIFT) | (long) member << MEMBER_SHIFT);
    }

    static int member(FrameHeader header) {
        return (int) (header.word(PROTOCOL) >>> MEMBER_SHIFT) & PART;
    }

    static long opCount(FrameHeader header) {
        return header.word(OP_COUNT);
    }

    static boolean isOf(FrameHeader header, ProxyOp op) {
        return header.word(OP_COUNT) == op.opCount() && header.word(SIGNATURE) == op.signature()
                && header.word(COUNT) == op.count();
    }

    static boolean isAfter(FrameHeader header, ProxyOp op) {
        return header.word(OP_COUNT) - op.opCount() > 0;
    }

    static String describeOperation(FrameHeader header) {
        return OperationSignature.describe(header.word(SIGNATURE), header.word(OP_COUNT), header.word(COUNT));
    }
}
