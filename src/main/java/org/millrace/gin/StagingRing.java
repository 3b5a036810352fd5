package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.GinCells;

/**
 * Memory of one host through which one rank's bytes reach another's window without a CPU copying them: the sender's
 * device copies into it, a frame without payload says where, the receiver's device copies out of it. Both processes map
 * it; each may know it under another address, and its device under yet another.
 *
 * <pre>
 *   0          64            4096                               4096 + capacity
 *   +----------+-------------+----------------------------------+
 *   | released | unused      | the bytes                        |
 *   +----------+-------------+----------------------------------+
 * </pre>
 *
 * <p>
 * Pieces lie one behind the other, each at a multiple of 64 bytes and in one run: one that does not fit before the end
 * lies at the start. Positions count all bytes that ever went through, what was skipped included; both ends compute
 * them by the same rule. {@code released} is the position up to which the receiver has read; only the receiver writes
 * it. The receiver settles what arrives in order, so one word is enough.
 */
public final class StagingRing {

    private static final long HEADER_BYTES = 4096;
    private static final long ALIGNMENT = 64;
    /** Shorter pieces cost more for their beginning than their copies gain by overlapping. */
    private static final long MIN_PIECE_BYTES = 256 << 10;
    /**
     * A put is cut into at least so many pieces, unless they would be too short: what overlaps is all but the first
     * copy out and the last copy in.
     */
    private static final long PIECES = 4;

    private final MemorySegment memory;
    private final GinCells released;
    private final long device;
    private final long capacity;

    /**
     * One end of a ring.
     *
     * @param memory of {@link #bytes}, of the global scope; its first word tells both ends where they begin, zeros are
     *               as good as any
     * @param device where this process's device sees it; the address of the memory itself if the device is the host
     * @throws IllegalArgumentException if the memory has another size than a ring has
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
     * How much memory a ring needs.
     *
     * @param capacity a power of two, at least twice the communicator's chunk
     */
    public static long bytes(long capacity) {
        return HEADER_BYTES + capacity;
    }

    /** The ring's memory, for a host that copies by itself. */
    public MemorySegment memory() {
        return memory;
    }

    /** The ring's memory, for a device. */
    public long device() {
        return device;
    }

    public GinCells released() {
        return released;
    }

    /** How many bytes fit in. */
    public long capacity() {
        return capacity;
    }

    /** Where a piece begins that comes next. */
    long start(long position, long bytes) {
        long at = position & capacity - 1;
        return at + bytes <= capacity ? position : position + capacity - at;
    }

    /** Where the piece behind one may begin. */
    static long end(long start, long bytes) {
        return start + (bytes + ALIGNMENT - 1 & -ALIGNMENT);
    }

    long offset(long position) {
        return HEADER_BYTES + (position & capacity - 1);
    }

    /**
     * How much of a put of some size goes at once: long pieces of long ones, so that few are begun; shorter pieces of
     * short ones, so that they overlap.
     */
    public static long piece(long size, long chunkBytes) {
        return Math.min(chunkBytes, Math.max(MIN_PIECE_BYTES, size / PIECES + ALIGNMENT - 1 & -ALIGNMENT));
    }

    /** The sender's end. On the agent's thread. */
    public static final class Writer {
        private final StagingRing ring;
        private final int peer;
        private long taken;
        /**
         * The peer's word, as it was last read: between its last value and {@link #taken}, whatever the peer writes.
         */
        private long released;

        /** The end of a ring that a peer reads. */
        public Writer(StagingRing ring, int peer) {
            this.ring = ring;
            this.peer = peer;
            this.taken = ring.released().acquire(0);
            this.released = taken;
        }

        /** Begins to stage bytes of a window; returns where in the ring's memory, or -1 if there is no room now. */
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

        /** An acquire: pairs with the peer's release, behind which its copies were made. */
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

    /** The receiver's end. On the agent's thread. */
    public static final class Reader {
        private final StagingRing ring;
        private long expected;

        /** The end of a ring that a peer writes. */
        public Reader(StagingRing ring) {
            this.ring = ring;
            this.expected = ring.released().acquire(0);
        }

        /** What is wrong with where bytes are said to lie, if anything is: the place follows from what came before. */
        public @Nullable String problem(long offset, long bytes, long chunkBytes) {
            if (bytes < 1 || bytes > chunkBytes) {
                return bytes + " bytes are staged, and 1 to " + chunkBytes + " may be";
            }
            long right = ring.offset(ring.start(expected, bytes));
            return offset == right ? null : "its bytes are staged at " + offset + ", and not at " + right;
        }

        /** Begins to write the next bytes, whose place was checked, to a window; false if too much is under way. */
        public boolean begin(WindowTransfer transfer, Window target, long targetOffset, long bytes) {
            long start = ring.start(expected, bytes);
            if (!target.beginCopyIn(transfer, targetOffset, ring, ring.offset(start), bytes)) {
                return false;
            }
            expected = end(start, bytes);
            return true;
        }

        /** The position behind what was begun. */
        public long position() {
            return expected;
        }

        /**
         * Gives the room up to a position back. A release, behind the copies: pairs with the acquire of the sender, who
         * writes there next.
         */
        public void release(long position) {
            ring.released().release(0, position);
        }
    }
}
