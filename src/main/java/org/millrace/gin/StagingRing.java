package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.GinCells;

/**
 * Memory of one host that transfers one rank's bytes to another rank's window without a copy by a CPU. The sender's
 * device copies into the ring, a frame without payload contains the location, and the receiver's device copies out of
 * the ring. Both processes map it. The address of the ring may differ between the processes, and between a process and
 * its device.
 *
 * <pre>
 *   0          64            4096                               4096 + capacity
 *   +----------+-------------+----------------------------------+
 *   | released | unused      | the bytes                        |
 *   +----------+-------------+----------------------------------+
 * </pre>
 *
 * <p>
 * Pieces lie one after another, each contiguous and at a multiple of 64 bytes. A piece that does not fit before the end
 * lies at the start. Positions count all bytes that ever passed through the ring, including skipped bytes. Both ends
 * compute them by the same rule. {@code released} is the receiver's read position. Only the receiver writes it. The
 * receiver settles arriving bytes in order, so one word is sufficient.
 */
public final class StagingRing {

    private static final long HEADER_BYTES = 4096;
    private static final long ALIGNMENT = 64;
    /** Minimum size of a piece. The start of a shorter piece costs more than the overlap of its copies gains. */
    private static final long MIN_PIECE_BYTES = 256 << 10;
    /**
     * Minimum number of pieces of a put, unless they would be too short. The pieces overlap except for the first copy
     * out and the last copy in.
     */
    private static final long PIECES = 4;

    private final MemorySegment memory;
    private final GinCells released;
    private final long device;
    private final long capacity;

    /**
     * Creates one end of a ring.
     *
     * @param memory memory of {@link #bytes} bytes, of the global scope. Its first word is the initial position for
     *               both ends, and may have any value, such as zero.
     * @param device address of the memory for this process's device; the address of the memory itself if the device is
     *               the host
     * @throws IllegalArgumentException if the memory does not have the size of a ring
     */
    public StagingRing(MemorySegment memory, long device) {
        this.memory = memory;
        this.device = device;
        this.capacity = memory.byteSize() - HEADER_BYTES;
        if (capacity < ALIGNMENT || Long.bitCount(capacity) != 1) {
            throw new IllegalArgumentException("a staging ring in " + memory.byteSize() + " bytes: choose "
                    + HEADER_BYTES + " and a power of two");
        }
        this.released = GinCells.of(memory.asSlice(0, Long.BYTES));
    }

    /**
     * Returns the number of bytes of memory that a ring needs.
     *
     * @param capacity a power of two, at least twice the communicator's chunk
     */
    public static long bytes(long capacity) {
        return HEADER_BYTES + capacity;
    }

    /** Returns the ring's memory, for a host that copies without a device. */
    public MemorySegment memory() {
        return memory;
    }

    /** Returns the address of the ring's memory for a device. */
    public long device() {
        return device;
    }

    public GinCells released() {
        return released;
    }

    /** Returns the number of bytes that fit into the ring. */
    public long capacity() {
        return capacity;
    }

    /** Returns the start of the next piece. */
    long start(long position, long bytes) {
        long at = position & capacity - 1;
        return at + bytes <= capacity ? position : position + capacity - at;
    }

    /** Returns the position after a piece, at which the next piece may begin. */
    static long end(long start, long bytes) {
        return start + (bytes + ALIGNMENT - 1 & -ALIGNMENT);
    }

    long offset(long position) {
        return HEADER_BYTES + (position & capacity - 1);
    }

    /**
     * Returns the size of the pieces of a put. Long puts are cut into long pieces, so that few are begun. Short puts
     * are cut into shorter pieces, so that they overlap.
     */
    public static long piece(long size, long chunkBytes) {
        return Math.min(chunkBytes, Math.max(MIN_PIECE_BYTES, size / PIECES + ALIGNMENT - 1 & -ALIGNMENT));
    }

    /** The sender's end. Agent's thread only. */
    public static final class Writer {
        private final StagingRing ring;
        private final int peer;
        private long taken;
        /**
         * The peer's word as last read. It is checked to lie between its previous value and {@link #taken}, regardless
         * of the value that the peer writes.
         */
        private long released;

        /** Creates the sender's end of a ring that a peer reads. */
        public Writer(StagingRing ring, int peer) {
            this.ring = ring;
            this.peer = peer;
            this.taken = ring.released().acquire(0);
            this.released = taken;
        }

        /**
         * Begins to stage bytes of a window. Returns their offset in the ring's memory, or -1 if no room is available
         * now.
         */
        public long begin(WindowTransfer transfer, Window source, long sourceOffset, long bytes) {
            long start = ring.start(taken, bytes);
            long end = end(start, bytes);
            if (end - released > ring.capacity && end - readReleased() > ring.capacity) {
                return -1;
            }
            long offset = ring.offset(start);
            if (!source.beginCopyOut(transfer, sourceOffset, ring, offset, bytes)) {
                return -1;
            }
            taken = end;
            return offset;
        }

        /** Reads the peer's word. An acquire: pairs with the peer's release, which comes after its copies. */
        private long readReleased() {
            long now = ring.released().acquire(0);
            if (now - released < 0 || taken - now < 0) {
                throw new GinException("rank " + peer + " says it has read the bytes that are staged for it up to "
                        + now + ": it had read them up to " + released + " before, and they end at " + taken);
            }
            released = now;
            return now;
        }
    }

    /** The receiver's end. Agent's thread only. */
    public static final class Reader {
        private final StagingRing ring;
        private long expected;

        /** Creates the receiver's end of a ring that a peer writes. */
        public Reader(StagingRing ring) {
            this.ring = ring;
            this.expected = ring.released().acquire(0);
        }

        /**
         * Returns the problem with the location that a frame states for staged bytes; null if it is correct. The
         * correct location follows from the earlier pieces.
         */
        public @Nullable String problem(long offset, long bytes, long chunkBytes) {
            if (bytes < 1 || bytes > chunkBytes) {
                return bytes + " bytes are staged, and 1 to " + chunkBytes + " may be";
            }
            long right = ring.offset(ring.start(expected, bytes));
            return offset == right ? null : "its bytes are staged at " + offset + ", and not at " + right;
        }

        /**
         * Begins to write the next bytes, after a check of their location, to a window. Returns false if too many
         * transfers are in flight.
         */
        public boolean begin(WindowTransfer transfer, Window target, long targetOffset, long bytes) {
            long start = ring.start(expected, bytes);
            if (!target.beginCopyIn(transfer, targetOffset, ring, ring.offset(start), bytes)) {
                return false;
            }
            expected = end(start, bytes);
            return true;
        }

        /** Returns the position after all pieces that were begun. */
        public long position() {
            return expected;
        }

        /**
         * Releases the room up to a position. A release, after the copies: pairs with the acquire of the sender, which
         * writes there next.
         */
        public void release(long position) {
            ring.released().release(0, position);
        }
    }
}
