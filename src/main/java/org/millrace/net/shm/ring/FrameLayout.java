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
 *
 * <p>
 * A payload may instead be left in the sender's memory: bit 62 of its length is set, and one line follows the header.
 *
 * <pre>
 *   64         72                128
 *   +----------+---------+---------+
 *   | address  | moved   | 0       |
 *   | i64      | i64     |         |
 *   +----------+---------+---------+
 * </pre>
 *
 * <p>
 * The receiver reads it there, and gives both lines back when it has. A sender that needs its memory before copies the
 * payload behind the ring in the ring's file, and says in {@code moved} where, 0 until then. The full fence behind that
 * store, before the memory changes, pairs with the receiver's acquire fence between its reading and its look at
 * {@code moved}: if it is not 0, what was read is not used, and the payload is taken from the file.
 */
final class FrameLayout {

    /** Length of a header. */
    static final int HEADER_BYTES = 64;
    /** Longest payload, as over any other network. */
    static final long MAX_PAYLOAD_BYTES = 1 << 30;

    private static final int MAGIC = 0x4d69466d;
    private static final long IN_PLACE = 1L << 62;
    private static final int MOVED_OFFSET = 8;
    private static final int LENGTH_OFFSET = 8;
    private static final int WORDS_OFFSET = 16;

    private FrameLayout() {}

    static void write(RingMemory ring, long at, int sequence, FrameHeader header, boolean inPlace) {
        ring.putLong(at, tag(sequence));
        ring.putLong(at + LENGTH_OFFSET, header.payloadBytes() | (inPlace ? IN_PLACE : 0));
        for (int i = 0; i < FrameHeader.WORDS; i++) {
            ring.putLong(at + WORDS_OFFSET + i * Long.BYTES, header.word(i));
        }
    }

    /** Writes the line behind a header whose payload is left where it is. */
    static void writePlace(RingMemory ring, long at, long address) {
        ring.putLong(at, address);
        ring.putLong(at + MOVED_OFFSET, 0);
    }

    static long address(RingMemory ring, long at) {
        return ring.getLong(at);
    }

    static long movedAcquire(RingMemory ring, long at) {
        return ring.getLongAcquire(at + MOVED_OFFSET);
    }

    static void movedRelease(RingMemory ring, long at, long place) {
        ring.putLongRelease(at + MOVED_OFFSET, place);
    }

    /** What {@link #read} found. */
    enum Found {
        /** No header, or not the one that is due. */
        NONE,
        /** A header, with its payload behind it. */
        IN_RING,
        /** A header, and the line that says where its payload is. */
        IN_PLACE
    }

    /** Reads each word of a header once, so that what is checked is what is used. */
    static Found read(RingMemory ring, long at, int sequence, FrameHeader header) {
        long length = ring.getLong(at + LENGTH_OFFSET);
        boolean inPlace = length >= IN_PLACE;
        long bytes = inPlace ? length - IN_PLACE : length;
        if (ring.getLong(at) != tag(sequence) || bytes < 0 || bytes > MAX_PAYLOAD_BYTES) {
            return Found.NONE;
        }
        header.payloadBytes(bytes);
        for (int i = 0; i < FrameHeader.WORDS; i++) {
            header.word(i, ring.getLong(at + WORDS_OFFSET + i * Long.BYTES));
        }
        return inPlace ? Found.IN_PLACE : Found.IN_RING;
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
