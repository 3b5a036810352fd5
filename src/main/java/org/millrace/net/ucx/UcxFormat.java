package org.millrace.net.ucx;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import java.lang.foreign.MemorySegment;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.NativeRegion;

/**
 * Layout of messages, little-endian. A message contains the headers of one or more frames. A short payload follows its
 * header in the same message. The next header begins at a multiple of 8.
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
 *   | magic, | tag    | host   | flags,     | pid   | start  | buffers | length | address of its worker  |
 *   | version|        |        | namespace  |       | ticks  |         | of one |                        |
 *   +--------+--------+--------+------------+-------+--------+---------+--------+----------------  -  ---+
 * </pre>
 *
 * The hello is a frame on the setup connection, see {@link UcxEnd}. It contains the first six words of the answer's
 * layout. The frame's payload is the address of the sender's worker. The shutdown message is also a frame on the setup
 * connection. A credit is a message of one word: the number of buffers that the receiver has posted again. A
 * confirmation is also a message of one word. It contains the number of separate payload messages that have arrived at
 * the receiver, according to the sender's UCX.
 */
final class UcxFormat {

    static final int HEADER_BYTES = 64;
    /** Maximum length of a payload in bytes, the same as over TCP. */
    static final int MAX_PAYLOAD_BYTES = 1 << 30;
    /** Maximum number of frames in flight. */
    static final int FRAMES = 16;
    /**
     * Number of a receiver's buffers for messages. This number is greater than {@link #FRAMES}, so that the sender does
     * not have to wait for a credit before each frame.
     */
    static final int BUFFERS = 2 * FRAMES;
    /** Number of messages after which the receiver sends a credit for their buffers. */
    static final int CREDIT_INTERVAL = BUFFERS / 4;
    /** Maximum number of credits in flight. */
    static final int CREDITS = BUFFERS / CREDIT_INTERVAL;

    /**
     * Length of a buffer in bytes if the processes share memory: a page of that memory. A longer payload is a separate
     * message, which the receiving side copies once.
     */
    static final int SHARED_BUFFER_BYTES = 8 << 10;
    /**
     * Length of a buffer in bytes if a card moves the bytes: the length that a card sends without asking the receiver
     * first.
     */
    static final int CARD_BUFFER_BYTES = 8 << 10;
    /**
     * Length of a buffer in bytes over TCP. Copying this number of bytes takes less time than a system call, for many
     * short frames as well as for one longer frame. A message therefore contains copies of frames, with their headers,
     * up to this total length. A longer payload is a separate message.
     */
    static final int TCP_BUFFER_BYTES = (64 << 10) + (4 << 10);
    /** Bounds of the buffer length in a receiver's answer. */
    static final int LEAST_BUFFER_BYTES = 4 << 10;
    static final int MAX_BUFFER_BYTES = 1 << 20;

    /** Values of a tag's lowest two bits. These bits distinguish the kinds of messages of one connection. */
    static final int TAG_HEADER = 0;
    static final int TAG_PAYLOAD = 1;
    static final int TAG_CONFIRMED = 2;
    static final int TAG_READY = 0;
    static final int TAG_CREDIT = 1;
    /** All higher bits of a tag. These bits are random for each connection. */
    static final long TAG_MASK = ~3L;

    static final int READY_BYTES = 64;
    /** Maximum length of a worker's address in bytes. */
    static final int MAX_ADDRESS_BYTES = 64 << 10;

    /**
     * First words of a hello, of an answer, of a shutdown message and of an abort message. Each word consists of eight
     * characters, which include the version of the protocol.
     */
    static final long HELLO = text("MILLUCX1");
    static final long READY = text("millucx1");
    static final long SHUTDOWN = text("goodbye1");
    static final long ABORT = text("aborted1");

    /** Bit of the flags: UCX can use shared memory in this process. */
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

    static void encode(FrameHeader header, long at) {
        // The magic number, and 4 bytes of 0 behind it.
        MEMORY.set(JAVA_LONG_UNALIGNED, at, MAGIC);
        MEMORY.set(JAVA_LONG_UNALIGNED, at + LENGTH_OFFSET, header.payloadBytes());
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            MEMORY.set(JAVA_LONG_UNALIGNED, at + WORDS_OFFSET + word * Long.BYTES, header.word(word));
        }
    }

    /**
     * Reads and checks a header that the peer wrote. Returns false if the header is not valid.
     *
     * @param bytes number of bytes of the message from the header on
     */
    static boolean decode(long at, long bytes, FrameHeader header) {
        if (bytes < HEADER_BYTES || MEMORY.get(JAVA_INT_UNALIGNED, at) != MAGIC) {
            return false;
        }
        decode(at, header);
        return header.payloadBytes() >= 0 && header.payloadBytes() <= MAX_PAYLOAD_BYTES;
    }

    /** Reads a header that this process wrote, without a check. */
    static void decode(long at, FrameHeader header) {
        header.payloadBytes(MEMORY.get(JAVA_LONG_UNALIGNED, at + LENGTH_OFFSET));
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            header.word(word, MEMORY.get(JAVA_LONG_UNALIGNED, at + WORDS_OFFSET + word * Long.BYTES));
        }
    }

    /**
     * Returns whether a payload of this length follows its header in the same message. Longer payloads are separate
     * messages.
     */
    static boolean isInline(long payloadBytes, int bufferBytes) {
        return payloadBytes <= bufferBytes - HEADER_BYTES;
    }

    /** @param inline whether the payload is in the message, after the header */
    static long frameBytes(long payloadBytes, boolean inline) {
        return HEADER_BYTES + (inline ? payloadBytes + Long.BYTES - 1 & -Long.BYTES : 0);
    }

    static void copy(long from, long to, long bytes) {
        MemorySegment.copy(MEMORY, from, MEMORY, to, bytes);
    }

    /** Returns the length of a header's payload. Throws if the length is not valid for a frame. */
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

    /** Throws if the first word of a peer's message is not the expected word. */
    static void check(String connection, long expected, long came) {
        if (expected != came) {
            throw new ConnectionException(connection + ": the peer began with 0x" + Long.toHexString(came) + " where 0x"
                    + Long.toHexString(expected) + " is expected: use the same Millrace in all processes");
        }
    }
}
