package org.millrace.net.shm;

import org.jspecify.annotations.Nullable;

/**
 * Layout of a ring's file, in the host's byte order. One process is the producer, and the other process is the
 * consumer. Each word has one writer. After the ring's data, from the next page boundary on, the file has space for
 * moved payloads. A moved payload was at first in the producer's memory, where the consumer could read it. The producer
 * then copied the payload to the file to reuse that memory, see {@link FrameLayout}.
 *
 * <pre>
 *   0        8         16         24      32        56       written once, by the side that created the file
 *   +--------+---------+----------+-------+---------+---------+
 *   | magic  | version | capacity | first | cookie  | least   |
 *   | i64    | i64     | i64      | i64   | 3 x i64 | in place|
 *   +--------+---------+----------+-------+---------+---------+
 *   128        136      by the producer     256        264     272     280      by the consumer   4096  by the producer
 *   +----------+-------+                    +----------+-------+-------+---------+               +------------------+
 *   | position | state |                    | position | state | reads | refuses |               | capacity of data |
 *   | i64      | i64   |                    | i64      | i64   | i64   | devices |               |                  |
 *   +----------+-------+                    +----------+-------+-------+---------+               +------------------+
 * </pre>
 *
 * <p>
 * The producer's {@link Cookie} invites the consumer to read the producer's memory. {@code least in place} is the
 * minimum length of a payload that stays in that memory. The consumer stores its answer in {@code reads} before it
 * sends the handshake's reply.
 *
 * <p>
 * A position is {@code first} plus the number of bytes that have passed through the ring. A position only grows, wraps
 * past 2<sup>63</sup>, and is compared by difference. The bytes between the consumer's and the producer's position are
 * published and not consumed yet. The offset of a position in the data is the position modulo the capacity, which is a
 * power of two. Position and capacity are multiples of {@value #ALIGNMENT}. The words of the two sides are two cache
 * lines apart, because a prefetcher fetches lines in pairs. A store of one side then does not evict the other side's
 * line.
 *
 * <p>
 * Pairs of accesses:
 * <ul>
 * <li>The producer writes data and then stores its position with a release. The consumer loads this position with an
 * acquire before it reads the data.
 * <li>The consumer copies data out of the ring and then stores its position with a release. The producer loads this
 * position with an acquire before it writes to the same bytes again.
 * <li>Each side stores its state with a release, after the last store of its position. The other side loads the state
 * with an acquire before its last read of that position.
 * <li>The producer stores the state {@link #ABANDONED}, executes a full fence, and then its memory may be freed. The
 * consumer reads that memory, executes an acquire fence, and then loads the state. The consumer therefore never uses
 * bytes that were stored after the producer's fence. For a single payload, the field {@code moved} in
 * {@link FrameLayout} has the same purpose.
 * </ul>
 */
final class RingLayout {

    /** Magic number of a ring's file. */
    static final long MAGIC = 0x4d694c6c52694e67L;
    /** Version of the ring, of its frames, and of everything else that the two processes share. */
    public static final int VERSION = 6;
    /** Alignment of positions, frames and pieces in bytes: a cache line. */
    static final int ALIGNMENT = 64;
    /** State of an active side. */
    static final long OPEN = 0;
    /** State of a side that has shut the connection down. */
    static final long CLOSED = 1;
    /**
     * State of a producer that closed without a shutdown message. The producer's memory must not be read, and no data
     * follows.
     */
    static final long ABANDONED = 2;

    /**
     * Length in bytes of the file's space for moved payloads. The producer copies payloads into this space to reuse its
     * own memory. The whole space occupies virtual addresses, but memory is allocated only for payloads that were
     * copied.
     */
    private static final long MOVED_BYTES = 1L << 32;

    /** Offset of the data in the file. The data begins at a page boundary. */
    public static final int DATA_OFFSET = 4096;

    private static final int MAGIC_OFFSET = 0;
    private static final int VERSION_OFFSET = 8;
    private static final int CAPACITY_OFFSET = 16;
    static final int FIRST = 24;
    private static final int COOKIE_OFFSET = 32;
    static final int LEAST_IN_PLACE = 56;
    static final int PRODUCER_POSITION = 128;
    static final int PRODUCER_STATE = 136;
    static final int CONSUMER_POSITION = 256;
    static final int CONSUMER_STATE = 264;
    static final int CONSUMER_READS = 272;
    static final int CONSUMER_REFUSES_DEVICES = 280;

    /**
     * Offsets of the names of lost peers. A side that shuts down because of a lost peer first stores the peer's name,
     * and then its own state.
     */
    static final int PRODUCER_LOST_PEER = 512;
    static final int CONSUMER_LOST_PEER = 640;

    private RingLayout() {}

    /**
     * Returns how many bytes at the beginning of the file are allocated when the file is created: all words, and the
     * ring's data.
     */
    static long allocatedBytes(long capacity) {
        return DATA_OFFSET + capacity;
    }

    /** Returns the offset of the file's space for moved payloads. The space begins at a page boundary. */
    static long movedOffset(long capacity) {
        return DATA_OFFSET + (capacity + DATA_OFFSET - 1) / DATA_OFFSET * DATA_OFFSET;
    }

    /** Returns the length of the whole file in bytes. */
    static long fileBytes(long capacity) {
        return movedOffset(capacity) + MOVED_BYTES;
    }

    /** Returns a number of bytes, rounded up to whole cache lines. */
    static long align(long bytes) {
        return bytes + ALIGNMENT - 1 & -ALIGNMENT;
    }

    static void initialize(RingMemory ring, long capacity, long first) {
        ring.putLong(MAGIC_OFFSET, MAGIC);
        ring.putLong(VERSION_OFFSET, VERSION);
        ring.putLong(CAPACITY_OFFSET, capacity);
        ring.putLong(FIRST, first);
        ring.putLongRelease(PRODUCER_POSITION, first);
        ring.putLongRelease(CONSUMER_POSITION, first);
    }

    /** Returns a description of the error in a ring that the peer created; null if the ring is valid. */
    static @Nullable String problem(RingMemory ring, long capacity) {
        if (ring.getLong(MAGIC_OFFSET) != MAGIC) {
            return "it begins with 0x" + Long.toHexString(ring.getLong(MAGIC_OFFSET)) + ", not with a ring's magic";
        }
        if (ring.getLong(VERSION_OFFSET) != VERSION || ring.getLong(CAPACITY_OFFSET) != capacity
                || (ring.getLong(FIRST) & ALIGNMENT - 1) != 0) {
            return "its version " + ring.getLong(VERSION_OFFSET) + ", capacity " + ring.getLong(CAPACITY_OFFSET)
                    + " and first position " + ring.getLong(FIRST) + " are not version " + VERSION + ", capacity "
                    + capacity + " and a multiple of " + ALIGNMENT;
        }
        return null;
    }

    static void invite(RingMemory ring, Cookie cookie, long leastInPlace) {
        ring.putLong(COOKIE_OFFSET, cookie.address());
        ring.putLong(COOKIE_OFFSET + Long.BYTES, cookie.first());
        ring.putLong(COOKIE_OFFSET + 2 * Long.BYTES, cookie.second());
        ring.putLong(LEAST_IN_PLACE, leastInPlace);
    }

    static Cookie cookie(RingMemory ring) {
        return new Cookie(ring.getLong(COOKIE_OFFSET), ring.getLong(COOKIE_OFFSET + Long.BYTES),
                ring.getLong(COOKIE_OFFSET + 2 * Long.BYTES));
    }
}
