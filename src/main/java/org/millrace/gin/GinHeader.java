package org.millrace.gin;

import org.millrace.net.FrameHeader;

/**
 * Layout of the words of a frame's header. Ranges such as 0..7 are bits of a word.
 *
 * <pre>
 *           HELLO                    all others
 *  word 0   kind 0..7                kind 0..7, number of inline bytes 8..15, flag "signalled" 16, flag "staged" 17,
 *                                    number of the context 32..63
 *  word 1   version of the protocol  handle of a window. PUT: the target. GET: the source. VA_SIGNAL: the window that
 *                                    contains the signal
 *  word 2   rank of the sender       offset in that window
 *  word 3   number of ranks          number of the signal 0..31, checksum of the payload 32..63 (0 for none)
 *  word 4   bytes of a chunk         PUT, VA_SIGNAL: value to add to the signal. GET_DATA: location of the staged bytes
 *  word 5   0                        PUT: the inline value, or the location of the staged bytes. GET: number of bytes.
 *                                    GET_DATA: number of the answered get. The gets that a rank requests from a peer
 *                                    are numbered from 0.
 *
 *  location of staged bytes: number of bytes 0..31, offset in the staging ring's memory 32..63. The frame then has no
 *  payload.
 * </pre>
 */
final class GinHeader {

    static final int HELLO = 1;
    static final int PUT = 2;
    static final int VA_SIGNAL = 3;
    static final int GET = 4;
    static final int GET_DATA = 5;

    /** Version of the protocol. Every change of the layout changes the version. */
    static final long PROTOCOL = 0x4D_52_47_49_4E_04L;

    static final int CHECKED = 3;
    private static final int INLINE_SHIFT = 8;
    private static final long SIGNALLED = 1L << 16;
    private static final long STAGED = 1L << 17;
    private static final int CONTEXT_SHIFT = 32;
    private static final int OFFSET_SHIFT = 32;
    private static final long BYTES_MASK = 0xFFFF_FFFFL;

    private GinHeader() {}

    static void hello(FrameHeader header, int rank, int ranks, long chunkBytes) {
        set(header, HELLO, 0, PROTOCOL, rank, 0);
        header.word(3, ranks);
        header.word(4, chunkBytes);
    }

    /** Sets all words of a header, without a signal. */
    static void set(FrameHeader header, int kind, int context, long window, long offset, long last) {
        header.payloadBytes(0);
        header.word(0, kind | (long) context << CONTEXT_SHIFT);
        header.word(1, window);
        header.word(2, offset);
        header.word(3, 0);
        header.word(4, 0);
        header.word(5, last);
    }

    static void inline(FrameHeader header, long bytes, long value) {
        header.word(0, header.word(0) | bytes << INLINE_SHIFT);
        header.word(5, value);
    }

    static void signal(FrameHeader header, int signal, long value) {
        header.word(0, header.word(0) | SIGNALLED);
        header.word(3, Integer.toUnsignedLong(signal));
        header.word(4, value);
    }

    /**
     * Records where the staging ring contains the bytes of a put or of an answer to a get. Must be called after all
     * other changes of the header.
     */
    static void staged(FrameHeader header, long offset, long bytes) {
        header.word(0, header.word(0) | STAGED);
        header.word(stagedWord(header), offset << OFFSET_SHIFT | bytes);
    }

    private static int stagedWord(FrameHeader header) {
        return kind(header) == PUT ? 5 : 4;
    }

    static boolean isStaged(FrameHeader header) {
        return (header.word(0) & STAGED) != 0;
    }

    static long stagedOffset(FrameHeader header) {
        return header.word(stagedWord(header)) >>> OFFSET_SHIFT;
    }

    static long stagedBytes(FrameHeader header) {
        return header.word(stagedWord(header)) & BYTES_MASK;
    }

    static int kind(FrameHeader header) {
        return (int) (header.word(0) & 0xff);
    }

    static int inlineBytes(FrameHeader header) {
        return (int) (header.word(0) >>> INLINE_SHIFT & 0xff);
    }

    static boolean isSignalled(FrameHeader header) {
        return (header.word(0) & SIGNALLED) != 0;
    }

    static long context(FrameHeader header) {
        return header.word(0) >>> CONTEXT_SHIFT;
    }

    static long window(FrameHeader header) {
        return header.word(1);
    }

    static long offset(FrameHeader header) {
        return header.word(2);
    }

    static long signal(FrameHeader header) {
        return (int) header.word(3);
    }

    static long value(FrameHeader header) {
        return header.word(4);
    }

    static long last(FrameHeader header) {
        return header.word(5);
    }

    static String describe(FrameHeader header) {
        String kind = switch (kind(header)) {
            case HELLO -> "hello";
            case PUT -> "put";
            case VA_SIGNAL -> "VA signal";
            case GET -> "get";
            case GET_DATA -> "answer to a get";
            default -> "frame of kind " + kind(header);
        };
        return kind + " of " + (isStaged(header) ? stagedBytes(header) + " staged" : header.payloadBytes())
                + " bytes, context " + context(header) + ", window " + window(header) + " at " + offset(header)
                + (isSignalled(header) ? ", signal " + signal(header) : "");
    }
}
