package org.millrace.net.plugin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.net.FrameHeader;

/**
 * The message that transfers a frame's header, and its payload if the payload is short. Little-endian.
 *
 * <pre>
 *   0         8                56               64
 *   +---------+----------------+----------------+-----------+
 *   | payload | 6 words of the | 4 x the number | payload,  |
 *   | bytes   | layer above    | of the frame   | if short  |
 *   |         |                | + flags        |           |
 *   +---------+----------------+----------------+-----------+
 * </pre>
 */
final class MessageFormat {

    /** Version of all formats that the two ends of a connection use. */
    public static final int VERSION = 1;
    /** Length in bytes of a message without a payload. */
    public static final int HEADER_BYTES = 64;
    /** Maximum length of a frame's payload, in bytes. */
    public static final long MAX_PAYLOAD_BYTES = 1L << 30;

    /** Flag: the payload is sent in separate messages. */
    static final int APART = 1;
    /** Flag: the payload is in device memory at the sender, and is sent in separate messages. */
    static final int ON_DEVICE = 2;

    private static final int FLAG_BITS = 2;
    private static final int FLAG_MASK = (1 << FLAG_BITS) - 1;
    private static final int WORDS_OFFSET = 8;
    private static final int NUMBER_OFFSET = 56;

    private MessageFormat() {}

    static void write(MemorySegment to, long at, FrameHeader header, long number, int flags) {
        to.set(ValueLayout.JAVA_LONG, at, header.payloadBytes());
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            to.set(ValueLayout.JAVA_LONG, at + WORDS_OFFSET + word * Long.BYTES, header.word(word));
        }
        to.set(ValueLayout.JAVA_LONG, at + NUMBER_OFFSET, number << FLAG_BITS | flags);
    }

    static void read(MemorySegment from, long at, FrameHeader header) {
        header.payloadBytes(from.get(ValueLayout.JAVA_LONG, at));
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            header.word(word, from.get(ValueLayout.JAVA_LONG, at + WORDS_OFFSET + word * Long.BYTES));
        }
    }

    static long number(MemorySegment from, long at) {
        return from.get(ValueLayout.JAVA_LONG, at + NUMBER_OFFSET) >>> FLAG_BITS;
    }

    static int flags(MemorySegment from, long at) {
        return (int) from.get(ValueLayout.JAVA_LONG, at + NUMBER_OFFSET) & FLAG_MASK;
    }
}
