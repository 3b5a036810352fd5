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
 * With a {@link Cookie} the producer invites the consumer to read its memory, and says how long a payload must be to be
 * left there. The consumer's answer, {@code reads}, is in the ring before the handshake's.
 *
 * <p>
 * A position counts bytes since {@code first}, only grows, wraps past 2<sup>63</sup>, and is compared by difference:
 * what lies between the consumer's and the producer's is published and not yet consumed. Its place in the data is the
 * position modulo the capacity, a power of two. Both are multiples of {@value #ALIGNMENT}. The two positions are two
 * cache lines apart, so that neither side's stores, nor the prefetcher's pairs of lines, take the other's.
 *
 * <p>
 * What pairs with what:
 * <ul>
 * <li>the release store of the producer position, after the data up to it, with the consumer's acquire load before it
 * reads that data;
 * <li>the release store of the consumer position, after the data up to it was copied out, with the producer's acquire
 * load before it writes there again;
 * <li>the release store of a state, after the last position, with the other side's acquire load before its last look at
 * that position;
 * <li>the full fence behind the store of the state {@link #ABANDONED}, before the producer's memory may be freed, with
 * the consumer's acquire fence between its reading of that memory and its load of the state: bytes that were stored
 * after the fence are never taken for a payload. For a single payload the place in {@link FrameLayout} that tells that
 * it was moved does the same.
 * </ul>
 */
final class RingLayout {

    /** Says that the bytes are a ring. */
    static final long MAGIC = 0x4d694c6c52694e67L;
    /** Of everything that the two processes share. */
    public static final int VERSION = 5;
    /** Of positions, frames and pieces: a cache line. */
    static final int ALIGNMENT = 64;
    /** Value of a state while its side may go on. */
    static final long OPEN = 0;
    /** Value of a state once its side has shut the connection down. */
    static final long CLOSED = 1;
    /** Value of the producer's state once its memory must not be read any more. Nothing follows. */
    static final long ABANDONED = 2;

    /** Where the data begins: a page of its own. */
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

    /** Where each side names another process that it has lost, before its state says that it shuts down. */
    static final int PRODUCER_LOST_PEER = 512;
    static final int CONSUMER_LOST_PEER = 640;

    private RingLayout() {}

    /** Length of the whole. */
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

    /** What is wrong with a ring that the peer made; null if it is in order. */
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
