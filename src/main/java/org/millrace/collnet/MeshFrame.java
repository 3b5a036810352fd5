package org.millrace.collnet;

import org.millrace.net.FrameHeader;

/**
 * Layout of the header words of a frame between two ranks of a mesh. The words of a received frame come from another
 * process, so they are checked before they are used.
 *
 * <pre>
 *   0          1      2           3                4               5
 *  +----------+------+-----------+----------------+---------------+----------------+
 *  | sequence | what | bytes of  | offset in the  | offset of the | bytes of each  |
 *  | of piece |      | the piece | scratch memory | piece         | rank           |
 *  +----------+------+-----------+----------------+---------------+----------------+
 *
 *   what:  31    24 23   16 15   8 7                0
 *         +--------+-------+------+------------------+
 *         | kind   | op    | type | function, from 1 |
 *         +--------+-------+------+------------------+
 * </pre>
 */
final class MeshFrame {

    /** Kind of a frame that carries one rank's data to another rank. */
    static final int CONTRIBUTION = 0;
    /** Kind of a frame that carries a rank's reduced data to all ranks. */
    static final int RESULT = 1;

    static final int SEQUENCE = 0;
    static final int WHAT = 1;
    static final int BYTES = 2;
    static final int SCRATCH_OFFSET = 3;
    static final int WINDOW_OFFSET = 4;
    static final int BYTES_PER_RANK = 5;

    private static final int KIND_SHIFT = 24;
    private static final int OP_SHIFT = 16;
    private static final int TYPE_SHIFT = 8;
    private static final int BYTE = 0xff;

    private MeshFrame() {}

    /** Returns the second word of a frame: its kind and the request's operator, type and function. Never 0. */
    static long what(int kind, MeshRequest request) {
        return (long) kind << KIND_SHIFT | (long) request.op.code() << OP_SHIFT
                | (long) request.type.code() << TYPE_SHIFT | request.function.ordinal() + 1;
    }

    static long sequence(FrameHeader header) {
        return header.word(SEQUENCE);
    }

    static int kind(FrameHeader header) {
        return kind(header.word(WHAT));
    }

    static int kind(long what) {
        return (int) (what >>> KIND_SHIFT);
    }

    /** Describes, for messages, the request that a frame's words contain. */
    static String describe(long[] words) {
        long what = words[WHAT];
        return MeshRequest.describe((what & BYTE) - 1, what >>> TYPE_SHIFT & BYTE, what >>> OP_SHIFT & BYTE,
                words[WINDOW_OFFSET], words[BYTES], words[BYTES_PER_RANK]);
    }
}
