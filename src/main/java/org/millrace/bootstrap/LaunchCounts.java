package org.millrace.bootstrap;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;

/**
 * Counts the operations that a rank has launched. A rank that closes sends its counts to the other ranks. If another
 * rank has launched an operation that the closed rank has not launched, the other rank fails immediately. Such an
 * operation can never complete.
 */
public final class LaunchCounts {

    /**
     * Counts of another rank when it closed: collectives, sends to this rank, and receives from this rank.
     */
    private record Last(long collectives, long sends, long receives) {
    }

    // Tag of the message with the counts. The tags of connections, and of Attendance, have other high bytes.
    private static final long CLOSING = 0x7300_0000_0000_0000L;

    private final ControlPlane control;
    private final GroupFailure failure;
    /**
     * Number of launched collectives. Only the thread that issues operations writes this field, {@link #sends} and
     * {@link #receives}.
     */
    private volatile long collectives;
    private final AtomicLongArray sends;
    private final AtomicLongArray receives;
    /** Final counts, by rank; null until the rank has closed. Written by the thread that calls {@link #watch}. */
    private final AtomicReferenceArray<@Nullable Last> closed;
    /**
     * Whether any rank has closed. The thread that calls {@link #watch} writes this field after {@link #closed} and
     * before it reads the counts. The thread that issues operations reads this field after it has incremented a count.
     * At least one of the two threads therefore sees the other's write.
     */
    private volatile boolean closing;

    /**
     * @param failure first failure of the communicator. This object reports a failure when a rank closes and has not
     *                launched an operation that this rank has launched
     */
    public LaunchCounts(ControlPlane control, GroupFailure failure) {
        this.control = control;
        this.failure = failure;
        sends = new AtomicLongArray(control.size());
        receives = new AtomicLongArray(control.size());
        closed = new AtomicReferenceArray<>(control.size());
    }

    /** Counts a collective that is being issued. Returns its number, from 0. */
    @SuppressWarnings("NonAtomicOperationOnVolatileField") // safe: only one thread at a time issues operations
    public long collective() {
        long number = collectives;
        collectives = number + 1;
        if (closing) {
            failIfLeft();
        }
        return number;
    }

    /** Counts the start of a send to a peer or a receive from the peer. Returns the operation's number, from 0. */
    public long transfer(int peer, boolean isSend) {
        long number = (isSend ? sends : receives).getAndIncrement(peer);
        if (closing) {
            failIfLeft();
        }
        return number;
    }

    /** Returns the number of collectives. Callable from any thread. */
    public long collectives() {
        return collectives;
    }

    /** Returns the number of sends to a rank. Callable from any thread. */
    public long sends(int peer) {
        return sends.get(peer);
    }

    /** Returns the number of receives from a rank. Callable from any thread. */
    public long receives(int peer) {
        return receives.get(peer);
    }

    /** Sends the counts to the other ranks. Called when this rank closes; the rank must launch nothing afterwards. */
    public void close() {
        for (int peer = 0; peer < control.size(); peer++) {
            if (peer != control.rank()) {
                ByteBuffer last = ByteBuffer.allocate(3 * Long.BYTES);
                last.putLong(collectives).putLong(sends.get(peer)).putLong(receives.get(peer));
                control.send(peer, CLOSING, last.array());
            }
        }
    }

    /**
     * Reads the counts of ranks that have closed. Reports a failure if this rank has launched an operation that a
     * closed rank has not launched. Must be called by one thread, after each event of the control plane.
     */
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
                                + missing + ", counted from 0. Let each rank call every operation before it closes. If"
                                + " an exception closed rank " + peer + ", use Millrace.run or abort(reason), which"
                                + " report the exception to the other ranks",
                        control.rank(), peer, null, null));
            }
        }
    }
}
