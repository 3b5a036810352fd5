package org.millrace.net.socket;

import java.nio.ByteBuffer;
import java.util.function.IntToLongFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.LostPeerName;
import org.millrace.net.connection.SilentLink;

/**
 * The bytes before each piece of a frame, little-endian. Every piece carries the whole header of its frame, so the
 * receiver knows this header as soon as any piece of the frame arrives.
 *
 * <pre>
 *   0                                     64               72               76              80
 *   +-------------------------------------+----------------+----------------+---------------+
 *   | header of the frame, type 3         | frame number   | piece's offset | piece's bytes |
 *   | (see HeaderFormat)                  | i64, from 0    | i32            | i32           |
 *   +-------------------------------------+----------------+----------------+---------------+
 * </pre>
 *
 * <p>
 * Type 4 marks a piece that requests an immediate acknowledgement: the sender has no copy of the frame, and must not
 * release the frame's memory before the acknowledgement. Type 5 has no content and requests an acknowledgement of all
 * data sent before it. Type 6 reports a silent link. Type 2 is a shutdown message. Its field {@code frame} contains the
 * total number of the connection's frames.
 */
final class PieceFormat {

    /** Length in bytes of the header of a piece. */
    static final int BYTES = HeaderFormat.BYTES + 16;

    private static final int FRAME_OFFSET = HeaderFormat.BYTES;
    private static final int OFFSET_OFFSET = HeaderFormat.BYTES + 8;
    private static final int LENGTH_OFFSET = HeaderFormat.BYTES + 12;

    private PieceFormat() {}

    /** @param type type of a piece: 3, or 4 to request an immediate acknowledgement */
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

    /** Returns whether the piece requests an immediate acknowledgement. */
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
     * A message that the receiver sends on each stream, little-endian.
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
     * The counts are totals since the beginning, so a later acknowledgement includes all earlier acknowledgements. The
     * pieces of a stream are acknowledged in the order of their sending, so a count identifies the pieces. On the
     * successor of a lost stream the receiver first sends an acknowledgement. The sender then resends only missing
     * data.
     *
     * <p>
     * A shutdown message may name a lost process: then {@value #LOST} messages of type 3 precede it. Each of them
     * contains three words of {@link LostPeerName} instead of the counts. In the same way, the words of a
     * {@link SilentLink} precede a message of type 4.
     */
    static final class Ack {

        /** Length of an acknowledgement in bytes. */
        static final int BYTES = 32;

        /** Type of an acknowledgement: pieces have arrived. */
        static final int TYPE_ACK = 1;

        /** Type of a shutdown message, the last message of a receiver that is closed deliberately. */
        static final int TYPE_SHUTDOWN = 2;

        /** Type of a message with three words, which belong to a lost process's name or to a silent link. */
        static final int TYPE_LOST = 3;

        /** Type of a message after words that describe a silent link. */
        static final int TYPE_SILENT = 4;

        /** Number of words in each message of type 3. */
        static final int LOST_WORDS = 3;

        /** Number of messages of type 3 that contain one name. */
        static final int LOST = LostPeerName.COUNT / LOST_WORDS;

        /** Magic number: the bytes {@code M R A 1}. */
        private static final int MAGIC = 'M' | 'R' << 8 | 'A' << 16 | '1' << 24;

        private Ack() {}

        static void encode(int type, long pieces, long accepted, long whole, ByteBuffer to, int at) {
            to.putInt(at, MAGIC);
            to.putInt(at + 4, type);
            to.putLong(at + 8, pieces);
            to.putLong(at + 16, accepted);
            to.putLong(at + 24, whole);
        }

        /**
         * Encodes a shutdown message, preceded by the messages that name the lost peer, if any. Returns the position
         * after the message.
         */
        static int encodeShutdown(@Nullable String lostPeer, ByteBuffer to) {
            int at = lostPeer == null ? 0 : encodeWords(index -> LostPeerName.word(lostPeer, index), to);
            encode(TYPE_SHUTDOWN, 0, 0, 0, to, at);
            return at + BYTES;
        }

        /**
         * Encodes the report of a silent link. The report for null states that no link is silent. Returns the position
         * after the report.
         */
        static int encodeSilent(@Nullable SilentLink link, ByteBuffer to) {
            long[] words = SilentLink.words(link);
            int at = encodeWords(index -> words[index], to);
            encode(TYPE_SILENT, 0, 0, 0, to, at);
            return at + BYTES;
        }

        private static int encodeWords(IntToLongFunction words, ByteBuffer to) {
            int at = 0;
            for (int word = 0; word < LostPeerName.COUNT; word++) {
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
