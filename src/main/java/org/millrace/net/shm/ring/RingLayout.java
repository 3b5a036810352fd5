package org.millrace.net.shm.ring;

import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.LastWords;
import org.millrace.net.shm.peer.Cookie;

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
public final class RingLayout {

    /** Says that the bytes are a ring. */
    static final long MAGIC = 0x4d694c6c52694e67L;
    /** Of everything that the two processes share. */
    public static final int VERSION = 5;
    /** Of positions, frames and pieces: a cache line. */
    static final int ALIGNMENT = 64;
    /** Value of a state while its side may go on. */
    static final long OPEN = 0;
    /** Value of a state once its side has said goodbye. */
    static final long CLOSED = 1;
    /** Value of the producer's state once its memory must not be read any more. Nothing follows. */
    static final long ABANDONED = 2;

    /** Where the data begins: a page of its own. */
    public static final int DATA_OFFSET = 4096;

    private static final int MAGIC_OFFSET = 0;
    private static final int VERSION_OFFSET = 8;
    private static final int CAPACITY_OFFSET = 16;
    private static final int FIRST_OFFSET = 24;
    private static final int COOKIE_OFFSET = 32;
    private static final int LEAST_IN_PLACE_OFFSET = 56;
    private static final int PRODUCER_POSITION_OFFSET = 128;
    private static final int PRODUCER_STATE_OFFSET = 136;
    private static final int CONSUMER_POSITION_OFFSET = 256;
    private static final int CONSUMER_STATE_OFFSET = 264;
    private static final int CONSUMER_READS_OFFSET = 272;
    private static final int CONSUMER_REFUSES_DEVICES_OFFSET = 280;

    /** What a side says when it leaves for the sake of another process that was lost. */
    private static final int PRODUCER_LAST_WORDS_OFFSET = 512;
    private static final int CONSUMER_LAST_WORDS_OFFSET = 640;

    private RingLayout() {}

    /** To be called before the state is stored that says goodbye, by the side that stores it. */
    static void lastWords(RingMemory ring, boolean producer, @Nullable String lostPeer) {
        for (int i = 0; i < LastWords.COUNT; i++) {
            ring.putLong(lastWordOffset(producer, i), LastWords.word(lostPeer, i));
        }
    }

    /** What a side said whose state was seen to have changed. */
    static @Nullable String lastWords(RingMemory ring, boolean producer) {
        long[] words = new long[LastWords.COUNT];
        for (int i = 0; i < words.length; i++) {
            words[i] = ring.getLong(lastWordOffset(producer, i));
        }
        return LastWords.name(words);
    }

    private static int lastWordOffset(boolean producer, int index) {
        return (producer ? PRODUCER_LAST_WORDS_OFFSET : CONSUMER_LAST_WORDS_OFFSET) + index * Long.BYTES;
    }

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
        ring.putLong(FIRST_OFFSET, first);
        ring.putLongRelease(PRODUCER_POSITION_OFFSET, first);
        ring.putLongRelease(CONSUMER_POSITION_OFFSET, first);
    }

    /** What is wrong with a ring that the peer made; null if it is in order. */
    static @Nullable String problem(RingMemory ring, long capacity) {
        if (ring.getLong(MAGIC_OFFSET) != MAGIC) {
            return "it begins with 0x" + Long.toHexString(ring.getLong(MAGIC_OFFSET)) + ", not with a ring's magic";
        }
        if (ring.getLong(VERSION_OFFSET) != VERSION || ring.getLong(CAPACITY_OFFSET) != capacity
                || (ring.getLong(FIRST_OFFSET) & ALIGNMENT - 1) != 0) {
            return "its version " + ring.getLong(VERSION_OFFSET) + ", capacity " + ring.getLong(CAPACITY_OFFSET)
                    + " and first position " + ring.getLong(FIRST_OFFSET) + " are not version " + VERSION
                    + ", capacity " + capacity + " and a multiple of " + ALIGNMENT;
        }
        return null;
    }

    static long first(RingMemory ring) {
        return ring.getLong(FIRST_OFFSET);
    }

    static void invite(RingMemory ring, Cookie cookie, long leastInPlace) {
        ring.putLong(COOKIE_OFFSET, cookie.address());
        ring.putLong(COOKIE_OFFSET + Long.BYTES, cookie.first());
        ring.putLong(COOKIE_OFFSET + 2 * Long.BYTES, cookie.second());
        ring.putLong(LEAST_IN_PLACE_OFFSET, leastInPlace);
    }

    static Cookie cookie(RingMemory ring) {
        return new Cookie(ring.getLong(COOKIE_OFFSET), ring.getLong(COOKIE_OFFSET + Long.BYTES),
                ring.getLong(COOKIE_OFFSET + 2 * Long.BYTES));
    }

    /** The smallest payload that the producer leaves in its memory. */
    static long leastInPlace(RingMemory ring) {
        return ring.getLong(LEAST_IN_PLACE_OFFSET);
    }

    static void consumerReads(RingMemory ring, boolean reads) {
        ring.putLongRelease(CONSUMER_READS_OFFSET, reads ? 1 : 0);
    }

    /** Whether the consumer reads payloads in the producer's memory. */
    static boolean consumerReads(RingMemory ring) {
        return ring.getLongAcquire(CONSUMER_READS_OFFSET) == 1;
    }

    static void refuseDevices(RingMemory ring) {
        ring.putLongRelease(CONSUMER_REFUSES_DEVICES_OFFSET, 1);
    }

    /** Whether the consumer wants payloads that are in memory of the producer's device moved. */
    static boolean consumerRefusesDevices(RingMemory ring) {
        return ring.getLongAcquire(CONSUMER_REFUSES_DEVICES_OFFSET) != 0;
    }

    static long producerPositionAcquire(RingMemory ring) {
        return ring.getLongAcquire(PRODUCER_POSITION_OFFSET);
    }

    static void producerPositionRelease(RingMemory ring, long position) {
        ring.putLongRelease(PRODUCER_POSITION_OFFSET, position);
    }

    static long producerStateAcquire(RingMemory ring) {
        return ring.getLongAcquire(PRODUCER_STATE_OFFSET);
    }

    static void producerStateRelease(RingMemory ring, long state) {
        ring.putLongRelease(PRODUCER_STATE_OFFSET, state);
    }

    static long consumerPositionAcquire(RingMemory ring) {
        return ring.getLongAcquire(CONSUMER_POSITION_OFFSET);
    }

    static void consumerPositionRelease(RingMemory ring, long position) {
        ring.putLongRelease(CONSUMER_POSITION_OFFSET, position);
    }

    static long consumerStateAcquire(RingMemory ring) {
        return ring.getLongAcquire(CONSUMER_STATE_OFFSET);
    }

    static void consumerStateRelease(RingMemory ring, long state) {
        ring.putLongRelease(CONSUMER_STATE_OFFSET, state);
    }
}
