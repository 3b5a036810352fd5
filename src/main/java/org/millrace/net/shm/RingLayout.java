package org.millrace.net.shm;

import org.jspecify.annotations.Nullable;

/**
 * A ring's bytes, in the host's byte order. One process produces, one consumes; each word has one writer.
 *
 * <pre>
 *   0        8         16         24      32        56       written once, by the side that made the file
 *   +--------+---------+----------+-------+---------+---------+
 *   | magic  | version | capacity | first | cookie  | least   |
 *   | i64    | i64     | i64      | i64   | 3 x i64 | in place|
 *   +--------+---------+----------+-------+---------+---------+
 *   128        136      by the producer     256        264     272     280      by the consumer     4096  by the producer
 *   +----------+-------+                    +----------+-------+-------+---------+                 +------------------+
 *   | position | state |                    | position | state | reads | refuses |                 | capacity of data |
 *   | i64      | i64   |                    | i64      | i64   | i64   | devices |                 |                  |
 *   +----------+-------+                    +----------+-------+-------+---------+                 +------------------+
 * </pre>
 *
 * <p>
 * With a {@link Cookie} the producer invites the consumer to read its memory. It also states the minimum length of a
 * payload that stays there. The consumer's answer, {@code reads}, is in the ring before the handshake's reply.
 *
 * <p>
 * A position counts bytes since {@code first}. It only grows, wraps past 2<sup>63</sup>, and is compared by difference.
 * The bytes between the consumer's and the producer's position are published and not consumed yet. A position's place
 * in the data is the position modulo the capacity, a power of two. Both are multiples of {@value #ALIGNMENT}. The two
 * positions are two cache lines apart. One side's stores, and a prefetcher that fetches lines in pairs, therefore do
 * not take the other side's line away.
 *
 * <p>
 * Pairs of accesses:
 * <ul>
 * <li>The release store of the producer position, after the data up to it, pairs with the consumer's acquire load
 * before its read of that data.
 * <li>The release store of the consumer position, after the copy of the data up to it, pairs with the producer's
 * acquire load before its next write there.
 * <li>The release store of a state, after the last position, pairs with the other side's acquire load before its last
 * read of that position.
 * <li>The full fence after the store of the state {@link #ABANDONED} comes before the producer's memory may be freed.
 * It pairs with the consumer's acquire fence between its read of that memory and its load of the state. Bytes that were
 * stored after the fence are never taken for a payload. For a single payload, the field {@code moved} in
 * {@link FrameLayout} has the same purpose.
 * </ul>
 */
final class RingLayout {

    /** Marks the bytes of a ring. */
    static final long MAGIC = 0x4d694c6c52694e67L;
    /** Version of everything that the two processes share. */
    public static final int VERSION = 5;
    /** Alignment of positions, frames and pieces: a cache line. */
    static final int ALIGNMENT = 64;
    /** State of an active side. */
    static final long OPEN = 0;
    /** State of a side that has shut the connection down. */
    static final long CLOSED = 1;
    /** State of a producer whose memory must not be read any longer. No data follows. */
    static final long ABANDONED = 2;

    /** Offset of the data, which begins at its own page. */
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

    /** Offsets of the names of lost processes: each side writes one before its state announces its shutdown. */
    static final int PRODUCER_LOST_PEER = 512;
    static final int CONSUMER_LOST_PEER = 640;

    private RingLayout() {}

    /** Returns the length of the whole file. */
    static long fileBytes(long capacity) {
        return DATA_OFFSET + capacity;
    }

    /** Rounds up to whole lines. */
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

    /** Describes the error in a ring that the peer created; null without an error. */
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
