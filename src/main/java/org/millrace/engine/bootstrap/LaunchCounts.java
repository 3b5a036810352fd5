package org.millrace.engine.bootstrap;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;

/**
 * How many operations a rank has launched. One that closes tells the others; who has launched an operation that it has
 * not fails at once, as the operation can never be complete.
 */
public final class LaunchCounts {

    /** What a rank has launched by the time that it closes; its transfers are those to and from this rank. */
    private record Last(long collectives, long sends, long receives) {
    }

    // connections' tags, and those of Attendance, have other high bytes
    private static final long CLOSING = 0x7300_0000_0000_0000L;

    private final ControlPlane control;
    private final GroupFailure failure;
    /** Written by the thread that issues, like the sends and receives by peer. */
    private volatile long collectives;
    private final AtomicLongArray sends;
    private final AtomicLongArray receives;
    /** By rank; null while it has not closed. Written by the thread that watches. */
    private final AtomicReferenceArray<@Nullable Last> closed;
    /**
     * Whether any has. Written behind {@link #closed} and before the counts are read; read behind a count's increment:
     * either the thread that issues sees it, or the thread that watches sees the operation.
     */
    private volatile boolean closing;

    /** @param failure learns which rank closes without an operation that this one has launched */
    public LaunchCounts(ControlPlane control, GroupFailure failure) {
        this.control = control;
        this.failure = failure;
        sends = new AtomicLongArray(control.size());
        receives = new AtomicLongArray(control.size());
        closed = new AtomicReferenceArray<>(control.size());
    }

    /** A collective is issued; returns its number. */
    @SuppressWarnings("NonAtomicOperationOnVolatileField") // one thread at a time issues
    public long collective() {
        long number = collectives;
        collectives = number + 1;
        if (closing) {
            failIfLeft();
        }
        return number;
    }

    /** A send or a receive is issued; returns its number. */
    public long transfer(int peer, boolean isSend) {
        long number = (isSend ? sends : receives).getAndIncrement(peer);
        if (closing) {
            failIfLeft();
        }
        return number;
    }

    /** Any thread. */
    public long collectives() {
        return collectives;
    }

    /** Those to a rank. Any thread. */
    public long sends(int peer) {
        return sends.get(peer);
    }

    /** Those from a rank. Any thread. */
    public long receives(int peer) {
        return receives.get(peer);
    }

    /** This rank closes and launches nothing any more: the others are told how far it has come. */
    public void close() {
        for (int peer = 0; peer < control.size(); peer++) {
            if (peer != control.rank()) {
                ByteBuffer last = ByteBuffer.allocate(3 * Long.BYTES);
                last.putLong(collectives).putLong(sends.get(peer)).putLong(receives.get(peer));
                control.send(peer, CLOSING, last.array());
            }
        }
    }

    /** Looks for ranks that close. To be called by one thread, after each of the control plane's events. */
    public void watch() {
        for (int peer = 0; peer < control.size(); peer++) {
            byte[] told = peer == control.rank() ? null : control.receive(peer, CLOSING);
            if (told != null) {
                RankLetter letter = new RankLetter(peer, "how much it has launched", told);
                closed.set(peer, new Last(letter.longNumber(), letter.longNumber(), letter.longNumber()));
                letter.end();
                closing = true;
                failIfLeft();
            }
        }
    }

    private void failIfLeft() {
        for (int peer = 0; peer < control.size(); peer++) {
            Last last = closed.get(peer);
            String missing = last == null ? null
                    : collectives - last.collectives > 0 ? "collective operation " + last.collectives
                            : sends.get(peer) - last.receives > 0
                                    ? "the receive number " + last.receives + " from this rank"
                                    : receives.get(peer) - last.sends > 0
                                            ? "the send number " + last.sends + " to this rank"
                                            : null;
            if (missing != null) {
                failure.fail(new AbortedException(
                        "rank " + peer + " has closed the communicator without an operation that this rank has begun: "
                                + missing + ", counted from 0. If its program threw an exception: Millrace.run, and"
                                + " abort(reason), tell the other ranks which",
                        control.rank(), peer, null, null));
            }
        }
    }
}
