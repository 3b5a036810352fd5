package org.millrace.cuda;

import java.util.Arrays;
import org.millrace.MillraceException;
import org.millrace.abi.CopyMailbox;

/**
 * Launches a requested kernel in one of several streams. Streams share a few hardware queues of the GPU, so a launch
 * may be queued after a kernel of the program that does not end without copies. If a launch does not begin at once, the
 * next stream is tried. The first kernel that begins serves, and later ones leave.
 *
 * <p>
 * The first attempt uses the stream of the launch that began last. No stream has two launches that have not ended.
 *
 * <p>
 * One thread.
 */
final class CopyLaunches {

    /** Number of streams that a kernel distinguishes; the same number as in copy.cu. */
    static final int MAX_STREAMS = 8;
    /** Number of refused launches after which no more are attempted. */
    static final int MAX_REFUSALS = 3;

    /** Launches kernels. Calls that CUDA refuses throw a {@link MillraceException}. */
    interface Streams {

        /** Returns whether all launches in a stream have ended. */
        boolean isIdle(int stream);

        /** Enqueues the kernel in a stream, as the launch with the given number there, from 1. */
        void launch(int stream, int number);
    }

    private final CopyMailbox mailbox;
    private final Streams streams;
    private final long startNanos;
    /** By stream: the number of launches, and whether the last one may not have ended. */
    private final int[] launches;
    private final boolean[] pending;
    private int first;
    private int refusals;

    /**
     * Creates launches for streams that have had none.
     *
     * @param count      number of streams, 1 to {@link #MAX_STREAMS}
     * @param startNanos time for a launch to begin before the next stream is tried, in nanoseconds
     */
    CopyLaunches(CopyMailbox mailbox, Streams streams, int count, long startNanos) {
        this.mailbox = mailbox;
        this.streams = streams;
        this.startNanos = startNanos;
        launches = new int[count];
        pending = new boolean[count];
    }

    /** Returns the number of launches. */
    int count() {
        return Arrays.stream(launches).sum();
    }

    /**
     * Tries each free stream while the kernel is awaited and no launch has begun. If CUDA refuses and no launch is
     * pending, sets the mailbox's state to {@link CopyMailbox#GONE}, so that the kernel may be requested again, a few
     * times. After that, the copy engine makes all copies.
     *
     * @return whether no launch has begun but one may, so that the caller must call this again after a while
     */
    boolean attempt() {
        try {
            for (int i = 0; i < launches.length && isAwaited(); i++) {
                attempt((first + i) % launches.length);
            }
        } catch (MillraceException refused) {
            refusals++;
            if (!anyPending()) { // otherwise the kernel owns the state
                if (refusals < MAX_REFUSALS) {
                    mailbox.stateGoneRelease();
                }
                return false;
            }
        }
        return isAwaited() && (refusals < MAX_REFUSALS || anyPending());
    }

    private void attempt(int stream) {
        pending[stream] = pending[stream] && !streams.isIdle(stream);
        if (pending[stream] || refusals >= MAX_REFUSALS) {
            return;
        }
        streams.launch(stream, launches[stream] + 1);
        launches[stream]++;
        pending[stream] = true;
        long begin = System.nanoTime();
        while (isAwaited() && System.nanoTime() - begin < startNanos) {
            Thread.yield();
        }
        if (!isAwaited()) {
            first = mailbox.streamPlain() % launches.length;
        }
    }

    private boolean anyPending() {
        for (boolean one : pending) {
            if (one) {
                return true;
            }
        }
        return false;
    }

    private boolean isAwaited() {
        return mailbox.stateAcquire() == CopyMailbox.ABSENT;
    }
}
