package org.millrace.net.ucx.frames;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import java.lang.foreign.MemorySegment;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.NativeRegion;

/**
 * What goes over the wire, little-endian. A header, and behind it a payload of up to {@value #INLINE_BYTES} bytes:
 *
 * <pre>
 *   0        4        8                16                                   64
 *   +--------+--------+----------------+----------------  -  ---------------+-- - --+
 *   | magic  | 0      | payload length | 6 words of the layer above         |       |
 *   | u32    |        | i64            | i64 each                           |       |
 *   +--------+--------+----------------+----------------  -  ---------------+-- - --+
 * </pre>
 *
 * A receiver's answer to the sender's hello:
 *
 * <pre>
 *   0        8        16       24           32      40       48
 *   +--------+--------+--------+------------+-------+--------+----------------  -  ---+
 *   | magic, | tag    | host   | flags,     | pid   | when   | where its worker is    |
 *   | version|        |        | namespace  |       | begun  |                        |
 *   +--------+--------+--------+------------+-------+--------+----------------  -  ---+
 * </pre>
 *
 * The hello is a frame of the TCP connection, with the same six words, and where the sender's worker is as its payload;
 * the goodbye is a frame, too. A credit is one word: how many frames were accepted so far.
 */
final class UcxFormat {

    /** Length of a header. */
    static final int HEADER_BYTES = 64;
    /** A payload of up to this many bytes goes with its header: two copies of it cost less than a second message. */
    static final int INLINE_BYTES = 8 << 10;
    /** Room for a header with its payload. */
    static final int SLOT_BYTES = HEADER_BYTES + INLINE_BYTES;
    /** The longest payload, as over TCP. */
    static final int MAX_PAYLOAD_BYTES = 1 << 30;
    /** Frames of which UCX may not have read the payload yet. */
    static final int IN_FLIGHT = 16;
    /** Frames that the receiver may not have accepted yet, for each of which it has a buffer; a power of two. */
    static final int WINDOW = 2 * IN_FLIGHT;
    /** Frames after which the sender is told that they were accepted: so it never waits for that alone. */
    static final int CREDIT_INTERVAL = IN_FLIGHT / 2;
    /** Credits that may be under way. */
    static final int CREDITS = WINDOW / CREDIT_INTERVAL;

    /** What a tag's lowest bits say. */
    static final int TAG_HEADER = 0;
    static final int TAG_PAYLOAD = 1;
    static final int TAG_READY = 0;
    static final int TAG_CREDIT = 1;
    /** A connection's tags are random but for these bits. */
    static final long TAG_MASK = ~3L;

    static final int READY_BYTES = 48;
    /** More than any worker's address takes. */
    static final int MAX_ADDRESS_BYTES = 64 << 10;
    static final int CREDIT_BYTES = Long.BYTES;

    /** The first words of a hello, of an answer and of a goodbye: eight characters with the version. */
    static final long HELLO = text("MILLUCX1");
    static final long READY = text("millucx1");
    static final long GOODBYE = text("goodbye1");

    /** In the flags: UCX has shared memory on this side. */
    static final long SHARES_MEMORY = 1;

    private static final int MAGIC = 'M' | 'U' << 8 | 'X' << 16 | '1' << 24;
    private static final int LENGTH_OFFSET = 8;
    private static final int WORDS_OFFSET = 16;
    private static final MemorySegment MEMORY = NativeRegion.ALL_MEMORY;

    private UcxFormat() {}

    private static long text(String eight) {
        long word = 0;
        for (int i = Long.BYTES - 1; i >= 0; i--) {
            word = word << Byte.SIZE | eight.charAt(i);
        }
        return word;
    }

    /** Writes a header at an address. */
    static void encode(FrameHeader header, long at) {
        MEMORY.set(JAVA_LONG_UNALIGNED, at, MAGIC); // and four bytes of 0
        MEMORY.set(JAVA_LONG_UNALIGNED, at + LENGTH_OFFSET, header.payloadBytes());
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            MEMORY.set(JAVA_LONG_UNALIGNED, at + WORDS_OFFSET + word * Long.BYTES, header.word(word));
        }
    }

    /** Reads a header of a message of so many bytes; false if it makes no sense. */
    static boolean decode(long at, long bytes, FrameHeader header) {
        if (bytes < HEADER_BYTES || MEMORY.get(JAVA_INT_UNALIGNED, at) != MAGIC) {
            return false;
        }
        long payload = MEMORY.get(JAVA_LONG_UNALIGNED, at + LENGTH_OFFSET);
        if (payload < 0 || payload > MAX_PAYLOAD_BYTES
                || bytes != HEADER_BYTES + (payload <= INLINE_BYTES ? payload : 0)) {
            return false;
        }
        decode(at, header);
        return true;
    }

    /** Reads a header that was written here. */
    static void decode(long at, FrameHeader header) {
        header.payloadBytes(MEMORY.get(JAVA_LONG_UNALIGNED, at + LENGTH_OFFSET));
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            header.word(word, MEMORY.get(JAVA_LONG_UNALIGNED, at + WORDS_OFFSET + word * Long.BYTES));
        }
    }

    /** Length of a header's payload; throws if no frame can be so long. */
    static long checkedLength(FrameHeader header) {
        long bytes = header.payloadBytes();
        if (bytes < 0 || bytes > MAX_PAYLOAD_BYTES) {
            throw new IllegalArgumentException("a payload has 0 to " + MAX_PAYLOAD_BYTES + " bytes, not " + bytes);
        }
        return bytes;
    }

    static long word(long at) {
        return MEMORY.get(JAVA_LONG_UNALIGNED, at);
    }

    static void word(long at, long value) {
        MEMORY.set(JAVA_LONG_UNALIGNED, at, value);
    }

    /** Throws unless a peer's first word is the one that is expected. */
    static void check(String connection, long expected, long came) {
        if (expected != came) {
            throw new ConnectionException(connection + ": the peer began with 0x" + Long.toHexString(came) + " where 0x"
                    + Long.toHexString(expected) + " is expected: use the same Millrace in all processes");
        }
    }
}
