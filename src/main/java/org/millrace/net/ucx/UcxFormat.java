package org.millrace.net.ucx;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import java.lang.foreign.MemorySegment;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.NativeRegion;

/**
 * What goes over the wire, little-endian. A message has one frame's header or several, one behind the other, each with
 * its payload behind it if that is short; what follows begins at a multiple of 8.
 *
 * <pre>
 *   0        4        8                16                                   64
 *   +--------+--------+----------------+----------------  -  ---------------+-- - --+-- - -
 *   | magic  | 0      | payload length | 6 words of the layer above         |       | next
 *   | u32    |        | i64            | i64 each                           |       |
 *   +--------+--------+----------------+----------------  -  ---------------+-- - --+-- - -
 * </pre>
 *
 * A receiver's answer to the sender's hello:
 *
 * <pre>
 *   0        8        16       24           32      40       48        56       64
 *   +--------+--------+--------+------------+-------+--------+---------+--------+----------------  -  ---+
 *   | magic, | tag    | host   | flags,     | pid   | when   | buffers | length | where its worker is    |
 *   | version|        |        | namespace  |       | begun  |         | of one |                        |
 *   +--------+--------+--------+------------+-------+--------+---------+--------+----------------  -  ---+
 * </pre>
 *
 * The hello is a frame of the TCP connection, with the first six of these words, and where the sender's worker is as
 * its payload; the shutdown message is a frame, too. A credit is one word: for how many messages the receiver has had a
 * buffer so far; a confirmation as well: how many payloads that were messages of their own the sender knows to be
 * received.
 */
final class UcxFormat {

    /** Length of a header. */
    static final int HEADER_BYTES = 64;
    /** The longest payload, as over TCP. */
    static final int MAX_PAYLOAD_BYTES = 1 << 30;
    /** Frames that are not complete. */
    static final int FRAMES = 16;
    /** Buffers that wait for messages: more than there are frames, so that credits need not come for each. */
    static final int BUFFERS = 2 * FRAMES;
    /** Messages after which the sender is told that their buffers wait again. */
    static final int CREDIT_INTERVAL = BUFFERS / 4;
    /** Credits that may be under way. */
    static final int CREDITS = BUFFERS / CREDIT_INTERVAL;

    /**
     * Length of a buffer. Where memory is shared: a page of it; a longer payload is copied once, by the side that
     * receives it.
     */
    static final int SHARED_BUFFER_BYTES = 8 << 10;
    /** Where a card moves bytes: what it sends without asking the receiver first. */
    static final int CARD_BUFFER_BYTES = 8 << 10;
    /** Over TCP: a call of the kernel costs more than to copy so much, as many small frames or one that is longer. */
    static final int TCP_BUFFER_BYTES = (64 << 10) + (4 << 10);
    /** What a receiver may say. */
    static final int LEAST_BUFFER_BYTES = 4 << 10;
    static final int MOST_BUFFER_BYTES = 1 << 20;

    /** What a tag's lowest bits say. */
    static final int TAG_HEADER = 0;
    static final int TAG_PAYLOAD = 1;
    static final int TAG_CONFIRMED = 2;
    static final int TAG_READY = 0;
    static final int TAG_CREDIT = 1;
    /** A connection's tags are random but for these bits. */
    static final long TAG_MASK = ~3L;

    static final int READY_BYTES = 64;
    /** More than any worker's address takes. */
    static final int MAX_ADDRESS_BYTES = 64 << 10;

    /** The first words of a hello, of an answer and of a shutdown message: eight characters with the version. */
    static final long HELLO = text("MILLUCX1");
    static final long READY = text("millucx1");
    static final long SHUTDOWN = text("goodbye1");
    static final long ABORT = text("aborted1");

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

    /** Reads a header that came, of which no more than so many bytes are there; false if it makes no sense. */
    static boolean decode(long at, long bytes, FrameHeader header) {
        if (bytes < HEADER_BYTES || MEMORY.get(JAVA_INT_UNALIGNED, at) != MAGIC) {
            return false;
        }
        decode(at, header);
        return header.payloadBytes() >= 0 && header.payloadBytes() <= MAX_PAYLOAD_BYTES;
    }

    /** Reads a header that was written here. */
    static void decode(long at, FrameHeader header) {
        header.payloadBytes(MEMORY.get(JAVA_LONG_UNALIGNED, at + LENGTH_OFFSET));
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            header.word(word, MEMORY.get(JAVA_LONG_UNALIGNED, at + WORDS_OFFSET + word * Long.BYTES));
        }
    }

    /** Whether a payload goes behind its header, with buffers of a length; else it is a message of its own. */
    static boolean isInline(long payloadBytes, int bufferBytes) {
        return payloadBytes <= bufferBytes - HEADER_BYTES;
    }

    /** Length in a message of a frame whose payload goes behind its header, or does not. */
    static long frameBytes(long payloadBytes, boolean inline) {
        return HEADER_BYTES + (inline ? payloadBytes + Long.BYTES - 1 & -Long.BYTES : 0);
    }

    static void copy(long from, long to, long bytes) {
        MemorySegment.copy(MEMORY, from, MEMORY, to, bytes);
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
