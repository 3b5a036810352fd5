package org.millrace.net.socket;

/**
 * Lets an idle stream send pieces that another stream is slow with, so that one slow rail never delays a connection.
 * Each sent piece is reinjected at most once, and the receiver discards the later copy. One thread.
 */
final class Reinjection {

    /** A stream is slow with a piece if it would take more than this many times as long as the idle stream. */
    private static final double ADVANTAGE = 4;
    /** Minimum age of a reinjected piece: a receiver's thread may not run for this time. */
    private static final long PATIENCE_NANOS = 1_000_000;
    /** Minimum age of reinjected pieces that wait for a destination, as far as the sender knows. */
    private static final long UNACCEPTED_PATIENCE_NANOS = 100_000_000;
    /** A stream is lost if it delivers nothing for this time although others delivered its pieces. */
    private static final long SILENCE_NANOS = 10_000_000_000L;

    private final SendStream[] streams;
    private final SendWindow frames;
    /** By stream: number of its sent pieces that were reinjected, in the numbering of its queue. */
    private final long[] reinjected;

    Reinjection(SendStream[] streams, SendWindow frames) {
        this.streams = streams;
        this.frames = frames;
        reinjected = new long[streams.length];
    }

    /** Handles the replacement of a stream. */
    void replaced(int stream) {
        reinjected[stream] = 0;
    }

    /** Checks once whether an idle stream can help another. */
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

    /** Short pieces stay together, because one write sends them all. */
    private static boolean mayPart(SendStream slow, long now) {
        return !ShortPieces.isShort(slow.unsentLength()) || slow.silence(now) > PATIENCE_NANOS;
    }

    private boolean isSlow(SendStream slow, SendStream idle, long at, long now) {
        PieceQueue sent = slow.sent();
        long age = now - sent.time(at);
        return age > (sent.frame(at) < frames.accepted() ? PATIENCE_NANOS : UNACCEPTED_PATIENCE_NANOS)
                && slow.nanosFor(0, now) > ADVANTAGE * idle.nanosFor(sent.length(at), now);
    }

    /**
     * Returns a stream that has delivered nothing for a long time, although others delivered its oldest piece; null
     * without one.
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
