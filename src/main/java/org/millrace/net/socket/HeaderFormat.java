package org.millrace.net.socket;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.LostPeerName;
import org.millrace.net.connection.SilentLink;

/**
 * The first 64 of the 80 bytes that precede each piece of a frame, little-endian. {@link PieceFormat} describes the
 * other 16 bytes. The sending end's messages without a piece also have this format of 80 bytes.
 *
 * <pre>
 *   0        4        6        8                16                                   64
 *   +--------+--------+--------+----------------+----------------  -  ---------------+
 *   | magic  | type   | flags  | payload length | 6 words of the layer above         |
 *   | u32    | u16    | u16, 0 | i64            | i64 each                           |
 *   +--------+--------+--------+----------------+----------------  -  ---------------+
 * </pre>
 *
 * <p>
 * A shutdown message is a header without a payload. Its words are 0, or name a lost process ({@link LostPeerName}). The
 * receiving end of a connection sends no header. Its own messages, including its shutdown message, have the format
 * {@link PieceFormat.Ack}.
 */
final class HeaderFormat {

    /** Length of a header in bytes. */
    public static final int BYTES = 64;

    /**
     * Maximum length of a payload in bytes: 1 GiB, as in NCCL's own socket transport. A buffer over a region's memory
     * has room for such a payload, see {@link SocketRegion}.
     */
    public static final int MAX_PAYLOAD_BYTES = 1 << 30;

    /** Unit for the length of pieces if several streams carry a payload: one page. */
    public static final int PART_ALIGNMENT = 4096;

    /** Type of a shutdown message, the last header of a connection that is closed deliberately. */
    static final int TYPE_SHUTDOWN = 2;

    /** Type of a header before a piece of a frame. */
    public static final int TYPE_PIECE = 3;

    /** Type of a header before a piece of a frame. The receiver must acknowledge this piece immediately. */
    static final int TYPE_URGENT_PIECE = 4;

    /** Type of a message without a frame: the sender requests an acknowledgement of all data sent so far. */
    static final int TYPE_ASK = 5;

    /**
     * Type of a message without a frame. The message reports that a link from the sender's host to a third host has
     * become silent, or active again. See {@link SilentLink}.
     */
    static final int TYPE_SILENT = 6;

    /** Magic number: the bytes {@code M R F 1}. */
    private static final int MAGIC = 'M' | 'R' << 8 | 'F' << 16 | '1' << 24;

    private static final int MAGIC_OFFSET = 0;
    private static final int TYPE_OFFSET = 4;
    private static final int LENGTH_OFFSET = 8;
    private static final int WORDS_OFFSET = 16;

    private HeaderFormat() {}

    /** Returns the payload length in a header. Throws an exception if the length exceeds the maximum. */
    public static int checkedLength(FrameHeader header) {
        long bytes = header.payloadBytes();
        if (bytes < 0 || bytes > MAX_PAYLOAD_BYTES) {
            throw new IllegalArgumentException("a payload has 0 to " + MAX_PAYLOAD_BYTES + " bytes, not " + bytes);
        }
        return (int) bytes;
    }

    public static void encode(FrameHeader header, int type, ByteBuffer to, int at) {
        encodeFixed(to, at, type, header.payloadBytes());
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            to.putLong(at + WORDS_OFFSET + word * Long.BYTES, header.word(word));
        }
    }

    /** Encodes a shutdown message. The message names the lost process that caused the shutdown, if any. */
    public static void encodeShutdown(@Nullable String lostPeer, ByteBuffer to, int at) {
        encodeFixed(to, at, TYPE_SHUTDOWN, 0);
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            to.putLong(at + WORDS_OFFSET + word * Long.BYTES, LostPeerName.word(lostPeer, word));
        }
    }

    /** Encodes a request for an acknowledgement. The request has no frame. */
    static void encodeAsk(ByteBuffer to, int at) {
        encodeFixed(to, at, TYPE_ASK, 0);
    }

    static void encodeSilent(@Nullable SilentLink link, ByteBuffer to, int at) {
        encodeFixed(to, at, TYPE_SILENT, 0);
        long[] words = SilentLink.words(link);
        for (int word = 0; word < words.length; word++) {
            to.putLong(at + WORDS_OFFSET + word * Long.BYTES, words[word]);
        }
    }

    /** Returns the lost process that is named in a shutdown message; null if the message names none. */
    public static @Nullable String lostPeer(ByteBuffer from, int at) {
        return LostPeerName.name(words(from, at));
    }

    static long[] words(ByteBuffer from, int at) {
        long[] words = new long[FrameHeader.WORDS];
        for (int word = 0; word < words.length; word++) {
            words[word] = from.getLong(at + WORDS_OFFSET + word * Long.BYTES);
        }
        return words;
    }

    private static void encodeFixed(ByteBuffer to, int at, int type, long payloadBytes) {
        to.putInt(at + MAGIC_OFFSET, MAGIC);
        to.putInt(at + TYPE_OFFSET, type);
        to.putLong(at + LENGTH_OFFSET, payloadBytes);
    }

    /** Returns whether these bytes are a header of the given type with a valid payload length. */
    public static boolean is(int type, ByteBuffer from, int at) {
        long length = from.getLong(at + LENGTH_OFFSET);
        return from.getInt(at + MAGIC_OFFSET) == MAGIC && from.getInt(at + TYPE_OFFSET) == type && length >= 0
                && length <= MAX_PAYLOAD_BYTES;
    }

    public static boolean isShutdown(ByteBuffer from, int at) {
        return from.getInt(at + MAGIC_OFFSET) == MAGIC && from.getInt(at + TYPE_OFFSET) == TYPE_SHUTDOWN
                && from.getLong(at + LENGTH_OFFSET) == 0;
    }

    public static long payloadBytes(ByteBuffer from, int at) {
        return from.getLong(at + LENGTH_OFFSET);
    }

    public static void decode(ByteBuffer from, int at, FrameHeader header) {
        header.payloadBytes(from.getLong(at + LENGTH_OFFSET));
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            header.word(word, from.getLong(at + WORDS_OFFSET + word * Long.BYTES));
        }
    }

    /** Describes why these bytes are neither a header with a payload nor a shutdown message. */
    public static String problem(ByteBuffer from, int at) {
        int magic = from.getInt(at + MAGIC_OFFSET);
        if (magic != MAGIC) {
            return String.format("a frame header begins with 0x%08x, but 0x%08x came", MAGIC, magic);
        }
        int type = from.getInt(at + TYPE_OFFSET);
        if (type < TYPE_SHUTDOWN || type > TYPE_SILENT) {
            return String.format("a frame header's type and flags are %d to %d, but 0x%08x came", TYPE_SHUTDOWN,
                    TYPE_SILENT, type);
        }
        return "a payload has 0 to " + MAX_PAYLOAD_BYTES + " bytes, but a header states "
                + from.getLong(at + LENGTH_OFFSET);
    }
}
