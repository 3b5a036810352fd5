package org.millrace.net.socket;

/**
 * How fast a stream delivers, by the acknowledgements that came lately: bytes against the time in which any were owed.
 * A stream that owes and is silent grows slower with every look. Short pieces do not count: however few bytes they
 * have, a round trip is what they take, and a stream that carries many of them would look slow to long ones. One
 * thread.
 */
final class DeliveryRate {

    /** What was measured counts half when so many pieces more were delivered. */
    private static final int HORIZON_PIECES = 32;
    /**
     * Before anything is known, all streams are equal; the number matters little, as a few pieces outweigh it: 1 GB/s.
     */
    private static final double FIRST_NANOS_PER_BYTE = 1;

    /**
     * A piece that took longer was held up by something else than its rail's speed, which counts as soon as that ends.
     */
    private static final long LONGEST_NANOS = 100_000_000;

    private final long horizonBytes;
    private double bytes;
    private double nanos;
    private long since;

    DeliveryRate(int pieceBytes) {
        horizonBytes = (long) HORIZON_PIECES * pieceBytes;
        bytes = pieceBytes;
        nanos = pieceBytes * FIRST_NANOS_PER_BYTE;
    }

    /** Notes that the stream owed nothing and owes something from now on. */
    void begin(long now) {
        since = now;
    }

    /** Notes that pieces were acknowledged whose time says nothing of bytes. */
    void deliveredShort(long now) {
        since = now;
    }

    /** Notes that so many bytes were acknowledged. */
    void delivered(long count, long now) {
        bytes += count;
        nanos += Math.clamp(now - since, 1, LONGEST_NANOS);
        since = now;
        if (bytes > horizonBytes) {
            bytes /= 2;
            nanos /= 2;
        }
    }

    /** How long ago the stream delivered something, or began to owe. */
    long silence(long now) {
        return now - since;
    }

    /** How long the stream will take for so many bytes, nanoseconds. */
    double nanosFor(long count, boolean owes, long now) {
        return count * (nanos + (owes ? now - since : 0)) / bytes;
    }
}
