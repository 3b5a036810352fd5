package org.millrace.net.shm;

import org.jspecify.annotations.Nullable;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;

/**
 * A frame in a ring: one line of header, then the payload, then unused bytes up to the end of its last line. The byte
 * order is the host's.
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
 * Headers never lie across the end of the ring's data, because they begin at multiples of their length; a payload may.
 * The sequence counts the ring's frames from 0.
 *
 * <p>
 * A payload may instead stay in the sender's memory: bit 62 of its length is set, and one line follows the header.
 *
 * <pre>
 *   64         72        80           88          96          128
 *   +----------+---------+------------+-----------+-----------+
 *   | address  | moved   | descriptor | allocated | allocated |
 *   | i64      | i64     | i64        | bytes i64 | from i64  |
 *   +----------+---------+------------+-----------+-----------+
 * </pre>
 *
 * <p>
 * If bit 61 is set, too, the payload is in device memory. The address then counts from the beginning of the memory that
 * the {@link DeviceRegion.Ticket} in the last three words describes. The words are 0 otherwise.
 *
 * <p>
 * The receiver reads the payload there, and releases both lines afterwards. A sender that needs its memory earlier
 * copies the payload behind the ring in the ring's file. It stores the position in {@code moved}, which is 0 until
 * then. The full fence after that store, before the memory changes, pairs with the receiver's acquire fence between its
 * read of the payload and its read of {@code moved}. If {@code moved} is not 0, the receiver discards the data and
 * reads the payload from the file.
 */
final class FrameLayout {

    /** Length of a header in bytes. */
    static final int HEADER_BYTES = 64;
    /** Maximum length of a payload, as over any other network. */
    static final long MAX_PAYLOAD_BYTES = 1 << 30;

    private static final int MAGIC = 0x4d69466d;
    private static final long IN_PLACE = 1L << 62;
    private static final long ON_DEVICE = 1L << 61;
    static final int MOVED_OFFSET = 8;
    private static final int DESCRIPTOR_OFFSET = 16;
    private static final int ALLOCATED_OFFSET = 24;
    private static final int ALLOCATED_FROM_OFFSET = 32;
    private static final int LENGTH_OFFSET = 8;
    private static final int WORDS_OFFSET = 16;

    private FrameLayout() {}

    static void write(RingMemory ring, long at, int sequence, FrameHeader header, Payload place) {
        ring.putLong(at, tag(sequence));
        ring.putLong(at + LENGTH_OFFSET, header.payloadBytes() | place.flags);
        for (int i = 0; i < FrameHeader.WORDS; i++) {
            ring.putLong(at + WORDS_OFFSET + i * Long.BYTES, header.word(i));
        }
    }

    /** Writes the line behind a header whose payload stays in place. */
    static void writePlace(RingMemory ring, long at, long address, DeviceRegion.@Nullable Ticket ticket) {
        ring.putLong(at, address);
        ring.putLong(at + MOVED_OFFSET, 0);
        ring.putLong(at + DESCRIPTOR_OFFSET, ticket == null ? 0 : ticket.descriptor());
        ring.putLong(at + ALLOCATED_OFFSET, ticket == null ? 0 : ticket.allocated());
        ring.putLong(at + ALLOCATED_FROM_OFFSET, ticket == null ? 0 : ticket.offset());
    }

    /** Returns whether a line names the memory of a ticket. */
    static boolean isOf(RingMemory ring, long at, DeviceRegion.Ticket ticket) {
        return ring.getLong(at + DESCRIPTOR_OFFSET) == ticket.descriptor()
                && ring.getLong(at + ALLOCATED_OFFSET) == ticket.allocated()
                && ring.getLong(at + ALLOCATED_FROM_OFFSET) == ticket.offset();
    }

    /** Returns the ticket in a line, as the peer wrote it. */
    static DeviceRegion.Ticket ticket(RingMemory ring, long at) {
        return new DeviceRegion.Ticket((int) ring.getLong(at + DESCRIPTOR_OFFSET), ring.getLong(at + ALLOCATED_OFFSET),
                ring.getLong(at + ALLOCATED_FROM_OFFSET));
    }

    /** Place of a frame's payload. */
    enum Payload {
        /** Behind its header, in the ring. */
        IN_RING(0),
        /** In the sender's memory: a line with its address follows the header. */
        IN_PLACE(FrameLayout.IN_PLACE),
        /** In the sender's device memory: a line with its address follows the header. */
        ON_DEVICE(FrameLayout.IN_PLACE | FrameLayout.ON_DEVICE);

        private final long flags;

        Payload(long flags) {
            this.flags = flags;
        }
    }

    /**
     * Reads each word of a header once, so that the checked value is the used value.
     *
     * @return place of its payload; null without a header, or with another header than the next one
     */
    static @Nullable Payload read(RingMemory ring, long at, int sequence, FrameHeader header) {
        long length = ring.getLong(at + LENGTH_OFFSET);
        Payload place = length < ON_DEVICE ? Payload.IN_RING
                : length >= Payload.ON_DEVICE.flags ? Payload.ON_DEVICE : Payload.IN_PLACE;
        long bytes = length - place.flags;
        if (ring.getLong(at) != tag(sequence) || bytes < 0 || bytes > MAX_PAYLOAD_BYTES) {
            return null;
        }
        header.payloadBytes(bytes);
        for (int i = 0; i < FrameHeader.WORDS; i++) {
            header.word(i, ring.getLong(at + WORDS_OFFSET + i * Long.BYTES));
        }
        return place;
    }

    static String describe(RingMemory ring, long at, int sequence) {
        return "magic and sequence 0x" + Long.toHexString(ring.getLong(at)) + " where 0x"
                + Long.toHexString(tag(sequence)) + " is due, and " + ring.getLong(at + LENGTH_OFFSET)
                + " bytes of payload where 0 to " + MAX_PAYLOAD_BYTES + " are allowed";
    }

    /** Returns magic number and sequence as one word. */
    private static long tag(int sequence) {
        return (long) sequence << Integer.SIZE | MAGIC;
    }
}
