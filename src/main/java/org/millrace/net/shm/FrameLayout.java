package org.millrace.net.shm;

import org.jspecify.annotations.Nullable;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;

/**
 * Layout of a frame in a ring: a header of one line, the payload, and unused bytes up to the end of the payload's last
 * line. A line has 64 bytes. The byte order is the native order of the host.
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
 * A payload may wrap around the end of the ring's data. A header never wraps around, because it begins at a multiple of
 * its length. The sequence is the ordinal of the frame in the ring, beginning with 0.
 *
 * <p>
 * A payload may also stay in the sender's memory. Bit 62 of its length is then set, and a location line follows the
 * header instead of the payload:
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
 * If bit 61 is also set, the payload is in device memory. The last three words are the {@link DeviceRegion.Ticket} of
 * that memory, and the address is an offset in that memory. Without bit 61 these words are 0.
 *
 * <p>
 * The receiver reads the payload at the address, and then releases the header and the location line. If the sender
 * needs its memory before this release, the sender copies the payload to the ring's file, behind the ring's data. The
 * sender changes {@code moved} from 0 to the file offset of this copy, and executes a full fence before the memory
 * changes. The receiver reads the payload, executes an acquire fence, and then reads {@code moved}. The two fences
 * pair. If {@code moved} is not 0, the receiver discards the data and reads the payload from the file.
 */
final class FrameLayout {

    /** Length of a header in bytes. */
    static final int HEADER_BYTES = 64;
    /** Maximum length of a payload in bytes, the same for all networks. */
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

    /** Writes the location line of a payload that stays in the sender's memory. */
    static void writePlace(RingMemory ring, long at, long address, DeviceRegion.@Nullable Ticket ticket) {
        ring.putLong(at, address);
        ring.putLong(at + MOVED_OFFSET, 0);
        ring.putLong(at + DESCRIPTOR_OFFSET, ticket == null ? 0 : ticket.descriptor());
        ring.putLong(at + ALLOCATED_OFFSET, ticket == null ? 0 : ticket.allocated());
        ring.putLong(at + ALLOCATED_FROM_OFFSET, ticket == null ? 0 : ticket.offset());
    }

    /** Returns whether a location line contains the given ticket. */
    static boolean isOf(RingMemory ring, long at, DeviceRegion.Ticket ticket) {
        return ring.getLong(at + DESCRIPTOR_OFFSET) == ticket.descriptor()
                && ring.getLong(at + ALLOCATED_OFFSET) == ticket.allocated()
                && ring.getLong(at + ALLOCATED_FROM_OFFSET) == ticket.offset();
    }

    /** Returns the ticket in a location line. The peer wrote it, and it is not checked. */
    static DeviceRegion.Ticket ticket(RingMemory ring, long at) {
        return new DeviceRegion.Ticket((int) ring.getLong(at + DESCRIPTOR_OFFSET), ring.getLong(at + ALLOCATED_OFFSET),
                ring.getLong(at + ALLOCATED_FROM_OFFSET));
    }

    /** Location of a frame's payload. */
    enum Payload {
        /** In the ring, after the header. */
        IN_RING(0),
        /** In the sender's host memory. A location line follows the header. */
        IN_PLACE(FrameLayout.IN_PLACE),
        /** In the sender's device memory. A location line follows the header. */
        ON_DEVICE(FrameLayout.IN_PLACE | FrameLayout.ON_DEVICE);

        private final long flags;

        Payload(long flags) {
            this.flags = flags;
        }
    }

    /**
     * Reads a header from the ring and checks it. Reads each word only once, so that the peer cannot change a word
     * after the check.
     *
     * @param sequence ordinal of the expected frame
     * @return location of the payload; null if the header is not valid, or is not the header of the expected frame
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

    /** Returns the magic number and the sequence of a header as one word. */
    private static long tag(int sequence) {
        return (long) sequence << Integer.SIZE | MAGIC;
    }
}
