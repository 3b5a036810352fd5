package org.millrace.net.socket;

import org.jspecify.annotations.Nullable;

/**
 * Chooses the stream for short pieces. They go where the one before went: then one write takes several, one read brings
 * them, and one acknowledgement answers. Another stream takes over where it delivers them clearly sooner. One thread.
 */
final class ShortPieces {

    /** A stream is left for another one that is quicker by so much and by half: less than a few calls of the kernel. */
    private static final double DETOUR_NANOS = 10_000;
    private static final double DETOUR = 2;
    /** A receiver's thread may not run for so long; a stream that is silent for longer is expected to remain so. */
    private static final long PATIENCE_NANOS = 1_000_000;

    private final SendStream[] streams;
    private @Nullable SendStream last;

    ShortPieces(SendStream[] streams) {
        this.streams = streams;
    }

    /** Whether a piece is one of those. */
    static boolean isShort(int length) {
        return length <= SendStream.SHORT_BYTES;
    }

    /** The stream for a short piece; null if all have enough to do. */
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
