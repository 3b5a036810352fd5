package org.millrace.net.shm.ring;

import org.millrace.net.FrameHeader;

/**
 * A frame in a ring: one line of header, then the payload, then nothing up to the end of its last line. The host's byte
 * order.
 *
 * <pre>
 *   0        4          8         16                      64                   64 + payload bytes, rounded up to 64
 *   +--------+----------+---------+-----------------------+--------------------+
 *   | magic  | sequence | payload | words                 | payload            |
 *   | u32    | u32      | bytes   | 6 x i64               |                    |
 *   +--------+----------+---------+-----------------------+--------------------+
 * </pre>
 *
 * <p>
 * Headers never lie across the end of the ring's data, as they begin at multiples of their length; a payload may. The
 * sequence counts the ring's frames from 0.
 */
final class FrameLayout {

    /** Length of a header. */
    static final int HEADER_BYTES = 64;
    /** Longest payload, as over any other network. */
    static final long MAX_PAYLOAD_BYTES = 1 << 30;

    private static final int MAGIC = 0x4d69466d;
    private static final int LENGTH_OFFSET = 8;
    private static final int WORDS_OFFSET = 16;

    private FrameLayout() {}

    static void write(RingMemory ring, long at, int sequence, FrameHeader header) {
        ring.putLong(at, tag(sequence));
        ring.putLong(at + LENGTH_OFFSET, header.payloadBytes());
        for (int i = 0; i < FrameHeader.WORDS; i++) {
            ring.putLong(at + WORDS_OFFSET + i * Long.BYTES, header.word(i));
        }
    }

    /**
     * Reads each word of a header once, so that what is checked is what is used; false if it is none, or not the one
     * that is due.
     */
    static boolean read(RingMemory ring, long at, int sequence, FrameHeader header) {
        long bytes = ring.getLong(at + LENGTH_OFFSET);
        if (ring.getLong(at) != tag(sequence) || bytes < 0 || bytes > MAX_PAYLOAD_BYTES) {
            return false;
        }
        header.payloadBytes(bytes);
        for (int i = 0; i < FrameHeader.WORDS; i++) {
            header.word(i, ring.getLong(at + WORDS_OFFSET + i * Long.BYTES));
        }
        return true;
    }

    static String describe(RingMemory ring, long at, int sequence) {
        return "magic and sequence 0x" + Long.toHexString(ring.getLong(at)) + " where 0x"
                + Long.toHexString(tag(sequence)) + " is due, and " + ring.getLong(at + LENGTH_OFFSET)
                + " bytes of payload where 0 to " + MAX_PAYLOAD_BYTES + " are allowed";
    }

    /** Magic and sequence as one word. */
    private static long tag(int sequence) {
        return (long) sequence << Integer.SIZE | MAGIC;
    }
}
