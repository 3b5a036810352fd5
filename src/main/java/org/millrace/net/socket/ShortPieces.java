package org.millrace.net.socket;

import org.jspecify.annotations.Nullable;

/**
 * Chooses the stream for short pieces. A short piece usually uses the same stream as the previous short piece. Then one
 * write sends several pieces, one read receives them, and one acknowledgement is enough. Another stream is chosen if it
 * would deliver the piece clearly sooner. Used by one thread.
 */
final class ShortPieces {

    /**
     * Margin for a change to another stream, in nanoseconds: less than the duration of a few system calls. The stream
     * changes if the previous stream would need longer than this margin plus twice the time of the fastest stream.
     */
    private static final double DETOUR_NANOS = 10_000;
    private static final double DETOUR = 2;
    /**
     * Time for which a receiver's thread may be without a core. A stream that is silent for longer is expected to stay
     * silent.
     */
    private static final long TIMEOUT_NANOS = 1_000_000;

    private final SendStream[] streams;
    private @Nullable SendStream last;

    ShortPieces(SendStream[] streams) {
        this.streams = streams;
    }

    static boolean isShort(int length) {
        return length <= SendStream.SHORT_BYTES;
    }

    /** Returns the stream for a short piece; null if no stream has room. */
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
        return stream.nanosFor(length, now) + stream.shortNanos() + (silence > TIMEOUT_NANOS ? silence : 0);
    }
}
