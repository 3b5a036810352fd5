package org.millrace.net.socket;

import org.jspecify.annotations.Nullable;

/**
 * Chooses the stream for short pieces. They follow the previous one: then one write sends several, one read receives
 * them, and one acknowledgement answers. Another stream takes over if it delivers them clearly sooner. One thread.
 */
final class ShortPieces {

    /**
     * A stream is left for another one if it needs more than twice the time of that one and this many nanoseconds in
     * addition. These are less than a few calls of the kernel.
     */
    private static final double DETOUR_NANOS = 10_000;
    private static final double DETOUR = 2;
    /** A receiver's thread may not run for this time. A stream that is silent for longer is expected to stay silent. */
    private static final long PATIENCE_NANOS = 1_000_000;

    private final SendStream[] streams;
    private @Nullable SendStream last;

    ShortPieces(SendStream[] streams) {
        this.streams = streams;
    }

    /** Returns whether a piece is short. */
    static boolean isShort(int length) {
        return length <= SendStream.SHORT_BYTES;
    }

    /** Returns the stream for a short piece; null if all are busy. */
    @Nullable
    SendStream choose(int length, long now) {
        SendStream best = null;
        double least = Double.MAX_VALUE;
        for (SendStream stream : streams) {
            if (stream.isOpen() && stream.hasRoom()) {
                double nanos = nanosFor(stream, length, now);
                if (nanos < least) {
                    least = nanos;
                    best = stream;
                }
            }
        }
        SendStream before = last;
        if (before == null || !before.isOpen() || !before.hasRoom()
                || nanosFor(before, length, now) > DETOUR * least + DETOUR_NANOS) {
            last = best;
        }
        return best == null ? null : last;
    }

    private static double nanosFor(SendStream stream, int length, long now) {
        long silence = stream.silence(now);
        return stream.nanosFor(length, now) + stream.shortNanos() + (silence > PATIENCE_NANOS ? silence : 0);
    }
}
