package org.millrace.net.socket;

/**
 * Lets an idle stream also send pieces that a slow stream has not delivered, so that one slow rail does not delay a
 * connection. A piece that was sent on one stream is sent again on another stream at most once. If a piece arrives more
 * than once, the receiver keeps only the first arrival. Used by one thread.
 */
final class Reinjection {

    /** A stream counts as slow if its time for a piece is more than this multiple of the idle stream's time. */
    private static final double ADVANTAGE = 4;
    /**
     * Minimum age of a piece before it is sent again. The receiver's thread may be without a core for about this time.
     */
    private static final long TIMEOUT_NANOS = 1_000_000;
    /** Minimum age of a piece before it is sent again, if the receiver has not reported a destination for the frame. */
    private static final long UNACCEPTED_TIMEOUT_NANOS = 100_000_000;
    /**
     * A stream counts as lost if it has delivered nothing for this time. In this time, its pieces were sent again on
     * other streams, which delivered them.
     */
    private static final long SILENCE_NANOS = 10_000_000_000L;

    private final SendStream[] streams;
    private final SendWindow frames;
    /**
     * For each stream, the number of the first sent piece that has not been sent a second time. Pieces are numbered as
     * in {@link SendStream#sent}.
     */
    private final long[] reinjected;

    Reinjection(SendStream[] streams, SendWindow frames) {
        this.streams = streams;
        this.frames = frames;
        reinjected = new long[streams.length];
    }

    void replaced(int stream) {
        reinjected[stream] = 0;
    }

    /** Lets each idle stream send at most one piece of another stream. */
    void step(long now) {
        for (SendStream idle : streams) {
            if (idle.isOpen() && idle.owed() == 0) {
                help(idle, now);
            }
        }
    }

    private void help(SendStream idle, long now) {
        for (int each = 0; each < streams.length; each++) {
            SendStream slow = streams[each];
            if (slow.isOpen() && slow.owed() > 0) {
                PieceQueue sent = slow.sent();
                long next = Math.max(reinjected[each], sent.taken());
                while (next < sent.added() && frames.isArrived(sent.frame(next), sent.piece(next))) {
                    next++;
                }
                reinjected[each] = next;
                if (next < sent.added() && isSlow(slow, idle, next, now)) {
                    idle.give(sent.frame(next), sent.piece(next), sent.length(next), now);
                    reinjected[each]++;
                    return;
                }
                if (slow.hasUnsent() && mayPart(slow, now)
                        && slow.nanosFor(0, now) > ADVANTAGE * idle.nanosFor(slow.unsentLength(), now)) {
                    slow.passOn(idle, now);
                    return;
                }
            }
        }
    }

    /**
     * Returns whether the slow stream's next unsent piece may move to another stream. Short pieces stay together on a
     * stream that is not silent, so that one write sends all of them.
     */
    private static boolean mayPart(SendStream slow, long now) {
        return !ShortPieces.isShort(slow.unsentLength()) || slow.silence(now) > TIMEOUT_NANOS;
    }

    private boolean isSlow(SendStream slow, SendStream idle, long at, long now) {
        PieceQueue sent = slow.sent();
        long age = now - sent.time(at);
        return age > (sent.frame(at) < frames.accepted() ? TIMEOUT_NANOS : UNACCEPTED_TIMEOUT_NANOS)
                && slow.nanosFor(0, now) > ADVANTAGE * idle.nanosFor(sent.length(at), now);
    }

    /**
     * Returns a stream that has delivered nothing for {@link #SILENCE_NANOS}, although the stream's oldest piece, sent
     * again on another stream, has arrived. Returns null if no such stream exists.
     */
    SendStream silent(long now) {
        for (SendStream stream : streams) {
            PieceQueue sent = stream.sent();
            if (stream.isOpen() && !sent.isEmpty() && frames.isArrived(sent.frame(), sent.piece())
                    && stream.silence(now) > SILENCE_NANOS) {
                return stream;
            }
        }
        return null;
    }
}
