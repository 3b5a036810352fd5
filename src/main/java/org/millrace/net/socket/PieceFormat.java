package org.millrace.net.socket;

import java.nio.ByteBuffer;
import java.util.function.IntToLongFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.LastWords;
import org.millrace.net.connection.SilentLink;

/**
 * The bytes that go before each piece of a frame, little-endian. Every piece carries the whole header of its frame, so
 * that the first to come introduces it.
 *
 * <pre>
 *   0                                     64               72               76              80
 *   +-------------------------------------+----------------+----------------+---------------+
 *   | header of the frame, type 3         | frame, from 0  | piece's offset | piece's bytes |
 *   | (see HeaderFormat)                  | i64            | i32            | i32           |
 *   +-------------------------------------+----------------+----------------+---------------+
 * </pre>
 *
 * <p>
 * Type 4 asks for an acknowledgement at once, as the sender has no copy: its memory is held until then. Type 5 asks for
 * one of what has come before, and has nothing else. Type 6 tells of a link that is silent. A shutdown message has type
 * 2 and, in place of the frame, how many frames there were in all.
 */
final class PieceFormat {

    /** Length of a piece's header. */
    static final int BYTES = HeaderFormat.BYTES + 16;

    private static final int FRAME_OFFSET = HeaderFormat.BYTES;
    private static final int OFFSET_OFFSET = HeaderFormat.BYTES + 8;
    private static final int LENGTH_OFFSET = HeaderFormat.BYTES + 12;

    private PieceFormat() {}

    /** @param type of a piece, which is acknowledged at once or not */
    static void encode(int type, FrameHeader header, long frame, int offset, int length, ByteBuffer to, int at) {
        HeaderFormat.encode(header, type, to, at);
        to.putLong(at + FRAME_OFFSET, frame);
        to.putInt(at + OFFSET_OFFSET, offset);
        to.putInt(at + LENGTH_OFFSET, length);
    }

    static boolean isAsk(ByteBuffer from, int at) {
        return HeaderFormat.is(HeaderFormat.TYPE_ASK, from, at) && HeaderFormat.payloadBytes(from, at) == 0;
    }

    static boolean isSilent(ByteBuffer from, int at) {
        return HeaderFormat.is(HeaderFormat.TYPE_SILENT, from, at) && HeaderFormat.payloadBytes(from, at) == 0;
    }

    static void encodeShutdown(long frames, @Nullable String lostPeer, ByteBuffer to, int at) {
        HeaderFormat.encodeShutdown(lostPeer, to, at);
        to.putLong(at + FRAME_OFFSET, frames);
        to.putLong(at + OFFSET_OFFSET, 0);
    }

    static boolean isPiece(ByteBuffer from, int at) {
        return HeaderFormat.is(HeaderFormat.TYPE_PIECE, from, at) || isUrgent(from, at);
    }

    /** Whether the sender waits for its acknowledgement. */
    static boolean isUrgent(ByteBuffer from, int at) {
        return HeaderFormat.is(HeaderFormat.TYPE_URGENT_PIECE, from, at);
    }

    static long frame(ByteBuffer from, int at) {
        return from.getLong(at + FRAME_OFFSET);
    }

    static int offset(ByteBuffer from, int at) {
        return from.getInt(at + OFFSET_OFFSET);
    }

    static int length(ByteBuffer from, int at) {
        return from.getInt(at + LENGTH_OFFSET);
    }

    /**
     * What a receiver says on each stream, little-endian.
     *
     * <pre>
     *   0        4        8                      16                     24                32
     *   +--------+--------+----------------------+----------------------+-----------------+
     *   | magic  | type   | pieces that arrived  | frames that have     | frames that are |
     *   | u32    | u32    | on this stream, i64  | a destination, i64   | whole, i64      |
     *   +--------+--------+----------------------+----------------------+-----------------+
     * </pre>
     *
     * <p>
     * The counts are cumulative: a later acknowledgement says all that an earlier one said. The pieces of a stream are
     * acknowledged in the order in which they were sent there, so a count names them. A stream that takes the place of
     * a lost one begins with an acknowledgement, which says what need not be sent again. Before a shutdown message for
     * the sake of another process that was lost stand {@value #LOST} of type 3, each with three of the
     * {@link LastWords} in place of counts. The words of a {@link SilentLink} stand in the same way before one of type
     * 4.
     */
    static final class Ack {

        /** Length of an acknowledgement. */
        static final int BYTES = 32;

        /** Pieces arrived. */
        static final int TYPE_ACK = 1;

        /** The receiver is closed on purpose: the last that it says. */
        static final int TYPE_SHUTDOWN = 2;

        /** A part of the name of a process that was lost. */
        static final int TYPE_LOST = 3;

        /** What was said before is of a link that is silent. */
        static final int TYPE_SILENT = 4;

        /** Words in each of these. */
        static final int LOST_WORDS = 3;

        /** How many of these there are. */
        static final int LOST = LastWords.COUNT / LOST_WORDS;

        /** The bytes {@code M R A 1}. */
        private static final int MAGIC = 'M' | 'R' << 8 | 'A' << 16 | '1' << 24;

        private Ack() {}

        static void encode(int type, long pieces, long accepted, long whole, ByteBuffer to, int at) {
            to.putInt(at, MAGIC);
            to.putInt(at + 4, type);
            to.putLong(at + 8, pieces);
            to.putLong(at + 16, accepted);
            to.putLong(at + 24, whole);
        }

        /** A shutdown message, and what stands before it; returns where it ends. */
        static int encodeShutdown(@Nullable String lostPeer, ByteBuffer to) {
            int at = lostPeer == null ? 0 : encodeWords(index -> LastWords.word(lostPeer, index), to);
            encode(TYPE_SHUTDOWN, 0, 0, 0, to, at);
            return at + BYTES;
        }

        /** A link that is silent, or none; returns where it ends. */
        static int encodeSilent(@Nullable SilentLink link, ByteBuffer to) {
            long[] words = SilentLink.words(link);
            int at = encodeWords(index -> words[index], to);
            encode(TYPE_SILENT, 0, 0, 0, to, at);
            return at + BYTES;
        }

        private static int encodeWords(IntToLongFunction words, ByteBuffer to) {
            int at = 0;
            for (int word = 0; word < LastWords.COUNT; word++) {
                if (word % LOST_WORDS == 0) {
                    to.putInt(at, MAGIC);
                    to.putInt(at + 4, TYPE_LOST);
                    at += BYTES;
                }
                to.putLong(at - BYTES + (1 + word % LOST_WORDS) * Long.BYTES, words.applyAsLong(word));
            }
            return at;
        }

        static void copyLost(ByteBuffer from, int at, long[] to, int word) {
            for (int i = 0; i < LOST_WORDS; i++) {
                to[word + i] = from.getLong(at + (1 + i) * Long.BYTES);
            }
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

        static long whole(ByteBuffer from, int at) {
            return from.getLong(at + 24);
        }
    }
}
