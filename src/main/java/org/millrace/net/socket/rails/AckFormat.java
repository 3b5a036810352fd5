package org.millrace.net.socket.rails;

import java.nio.ByteBuffer;

/**
 * What a receiver says on each stream of a connection of several rails, little-endian.
 *
 * <pre>
 *   0        4        8                      16                     24                32
 *   +--------+--------+----------------------+----------------------+-----------------+
 *   | magic  | type   | pieces that arrived  | frames that have     | 0               |
 *   | u32    | u32    | on this stream, i64  | a destination, i64   |                 |
 *   +--------+--------+----------------------+----------------------+-----------------+
 * </pre>
 *
 * <p>
 * Both counts are cumulative: a later acknowledgement says all that an earlier one said. The pieces of a stream are
 * acknowledged in the order in which they were sent there, so a count names them.
 */
final class AckFormat {

    /** Length of an acknowledgement. */
    static final int BYTES = 32;

    /** Pieces arrived. */
    static final int TYPE_ACK = 1;

    /** The receiver is closed on purpose: the last that it says. */
    static final int TYPE_GOODBYE = 2;

    /** The bytes {@code M R A 1}. */
    private static final int MAGIC = 'M' | 'R' << 8 | 'A' << 16 | '1' << 24;

    private AckFormat() {}

    static void encode(int type, long pieces, long accepted, ByteBuffer to, int at) {
        to.putInt(at, MAGIC);
        to.putInt(at + 4, type);
        to.putLong(at + 8, pieces);
        to.putLong(at + 16, accepted);
        to.putLong(at + 24, 0);
    }

    static boolean is(int type, ByteBuffer from, int at) {
        return from.getInt(at) == MAGIC && from.getInt(at + 4) == type;
    }

    static long pieces(ByteBuffer from, int at) {
        return from.getLong(at + 8);
    }

    static long accepted(ByteBuffer from, int at) {
        return from.getLong(at + 16);
    }
}
