package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinCells;

/**
 * Shared memory of one host that carries bytes of one rank, the sender, to a window of another rank, the receiver. No
 * CPU copies the bytes if the ranks have devices. The sender's device copies the bytes into the ring. A frame without
 * payload tells the receiver the location of the bytes in the ring. The receiver's device copies the bytes out of the
 * ring. Both processes map the ring's memory. The address of the memory may differ between the processes, and between a
 * process and its device.
 *
 * <pre>
 *   0          64            4096                               4096 + capacity
 *   +----------+-------------+----------------------------------+
 *   | released | unused      | the bytes                        |
 *   +----------+-------------+----------------------------------+
 * </pre>
 *
 * <p>
 * A piece is a contiguous range of bytes that one frame describes. Pieces follow one another, and each begins at a
 * multiple of 64 bytes. A piece that does not fit before the end of the ring begins at offset 4096 again. A position is
 * the number of bytes that have passed through the ring since its creation, including the skipped bytes. Sender and
 * receiver compute positions by the same rule. {@code released} is the position after the bytes that the receiver has
 * read. Only the receiver writes {@code released}. One word is sufficient, because the receiver releases pieces in the
 * order of their positions.
 */
public final class StagingRing {

    private static final long HEADER_BYTES = 4096;
    private static final long ALIGNMENT = 64;
    /**
     * Minimum size of a piece in bytes. If pieces were shorter, starting their copies would cost more time than the
     * overlap of the copies saves.
     */
    private static final long MIN_PIECE_BYTES = 256 << 10;
    /**
     * Minimum number of pieces of a put, unless the pieces would be shorter than {@link #MIN_PIECE_BYTES}. While one
     * piece is copied out of the ring, the next piece is copied into the ring.
     */
    private static final long PIECES = 4;

    private final MemorySegment memory;
    private final GinCells released;
    private final long device;
    private final long capacity;

    /**
     * Creates a view of a ring, for the sender or the receiver.
     *
     * @param memory memory of the global scope, with {@link #bytes} bytes. The first word of the memory contains the
     *               initial position, which can be any value, for example zero. Sender and receiver must see the same
     *               initial value.
     * @param device address that this process's device uses for the memory; equal to the host address if the device is
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
     * Returns the size of the memory of a ring, in bytes.
     *
     * @param capacity number of bytes that the ring can contain: a power of two, at least twice the communicator's
     *                 chunk
     */
    public static long bytes(long capacity) {
        return HEADER_BYTES + capacity;
    }

    /** Returns the ring's memory, for copies by the CPU on a host without a device. */
    public MemorySegment memory() {
        return memory;
    }

    /** Returns the address that this process's device uses for the ring's memory. */
    public long device() {
        return device;
    }

    public GinCells released() {
        return released;
    }

    /** Returns the number of bytes that the ring can contain. */
    public long capacity() {
        return capacity;
    }

    /**
     * @param position position after the previous piece
     * @param bytes    size of the next piece
     */
    long start(long position, long bytes) {
        long at = position & capacity - 1;
        return at + bytes <= capacity ? position : position + capacity - at;
    }

    /**
     * Returns the position after a piece.
     *
     * @param start position at which the piece begins
     * @param bytes size of the piece
     */
    static long end(long start, long bytes) {
        return start + (bytes + ALIGNMENT - 1 & -ALIGNMENT);
    }

    long offset(long position) {
        return HEADER_BYTES + (position & capacity - 1);
    }

    /**
     * Returns the maximum size of a put's pieces, in bytes. A long put has pieces of a whole chunk, so that few copies
     * are begun. A shorter put has shorter pieces, so that their copies overlap.
     *
     * @param size size of the put
     */
    public static long piece(long size, long chunkBytes) {
        return Math.min(chunkBytes, Math.max(MIN_PIECE_BYTES, size / PIECES + ALIGNMENT - 1 & -ALIGNMENT));
    }

    /** The sender's state of a ring. Agent's thread only. */
    public static final class Writer {
        private final StagingRing ring;
        private final int peer;
        private long taken;
        /**
         * Newest value read from the ring's {@code released} word. The receiver writes the word, so each new value is
         * checked: it must lie between the previous value and {@link #taken}.
         */
        private long released;

        /**
         * Creates the sender's state of a ring.
         *
         * @param peer rank of the receiver
         */
        public Writer(StagingRing ring, int peer) {
            this.ring = ring;
            this.peer = peer;
            this.taken = ring.released().acquire(0);
            this.released = taken;
        }

        /**
         * Begins to copy bytes of a window into the ring. Returns their offset in the ring's memory. Returns -1 if the
         * ring has no free space now, or no copy of the window's memory can begin now.
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

        /**
         * Reads the ring's {@code released} word. This acquire pairs with the receiver's release, which follows the
         * copies out of the ring.
         */
        private long readReleased() {
            long now = ring.released().acquire(0);
            if (now - released < 0 || taken - now < 0) {
                throw new GinException("rank " + peer + " reports read position " + now
                        + " in the staging ring; allowed are " + released + " to " + taken);
            }
            released = now;
            return now;
        }
    }

    /** The receiver's state of a ring. Agent's thread only. */
    public static final class Reader {
        private final StagingRing ring;
        private long expected;

        /** Creates the receiver's state of a ring. */
        public Reader(StagingRing ring) {
            this.ring = ring;
            this.expected = ring.released().acquire(0);
        }

        /**
         * Checks the location of staged bytes in a received frame. Returns a description of the error; null if the
         * location is correct. The correct offset follows from the earlier pieces.
         */
        public @Nullable String problem(long offset, long bytes, long chunkBytes) {
            if (bytes < 1 || bytes > chunkBytes) {
                return bytes + " bytes are staged, and 1 to " + chunkBytes + " may be";
            }
            long right = ring.offset(ring.start(expected, bytes));
            return offset == right ? null : "its bytes are staged at " + offset + ", and not at " + right;
        }

        /**
         * Begins to copy the next piece from the ring to a window. The piece's location must have passed the check of
         * {@link #problem}. Returns false if no copy to the window's memory can begin now.
         */
        public boolean begin(WindowTransfer transfer, Window target, long targetOffset, long bytes) {
            long start = ring.start(expected, bytes);
            if (!target.beginCopyIn(transfer, targetOffset, ring, ring.offset(start), bytes)) {
                return false;
            }
            expected = end(start, bytes);
            return true;
        }

        /** Returns the position after all pieces that {@link #begin} has begun to copy. */
        public long position() {
            return expected;
        }

        /**
         * Releases the ring's bytes up to a position, after the bytes were copied out. The store has release semantics.
         * It pairs with the acquire of the sender, and the sender overwrites these bytes next.
         */
        public void release(long position) {
            ring.released().release(0, position);
        }
    }
}
