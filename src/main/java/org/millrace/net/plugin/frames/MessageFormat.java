package org.millrace.net.plugin.frames;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.net.FrameHeader;

/**
 * The message of a frame, little-endian.
 *
 * <pre>
 *   0         8                56               64
 *   +---------+----------------+----------------+-----------+
 *   | payload | 6 words of the | frame's number | payload,  |
 *   | bytes   | layer above    | from 0         | if short  |
 *   +---------+----------------+----------------+-----------+
 * </pre>
 *
 * <p>
 * The number's sign says whether the payload is in the message: it is not if it is negated, minus one.
 */
public final class MessageFormat {

    /** Of all that goes between two ends. */
    public static final int VERSION = 1;
    /** Length of a message without a payload. */
    public static final int HEADER_BYTES = 64;
    /** The longest payload of a frame. */
    public static final long MAX_PAYLOAD_BYTES = 1L << 30;

    private static final int WORDS_OFFSET = 8;
    private static final int NUMBER_OFFSET = 56;

    private MessageFormat() {}

    static void write(MemorySegment to, long at, FrameHeader header, long number, boolean inline) {
        to.set(ValueLayout.JAVA_LONG, at, header.payloadBytes());
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            to.set(ValueLayout.JAVA_LONG, at + WORDS_OFFSET + word * Long.BYTES, header.word(word));
        }
        to.set(ValueLayout.JAVA_LONG, at + NUMBER_OFFSET, inline ? number : ~number);
    }

    static void read(MemorySegment from, long at, FrameHeader header) {
        header.payloadBytes(from.get(ValueLayout.JAVA_LONG, at));
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            header.word(word, from.get(ValueLayout.JAVA_LONG, at + WORDS_OFFSET + word * Long.BYTES));
        }
    }

    /** The frame's number, negated minus one if its payload is not in the message. */
    static long number(MemorySegment from, long at) {
        return from.get(ValueLayout.JAVA_LONG, at + NUMBER_OFFSET);
    }
}
