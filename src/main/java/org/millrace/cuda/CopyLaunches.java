package org.millrace.cuda;

import java.util.Arrays;
import org.millrace.MillraceException;
import org.millrace.abi.CopyMailbox;

/**
 * Has a kernel come that is asked for, in one of several streams. Streams share a few queues of the GPU's: what is
 * launched in one may stand behind a kernel of the program's that does not end without copies. So where a launch has
 * not begun at once, the next stream is tried. The first that begins serves; those that come later leave.
 *
 * <p>
 * A stream is tried first whose launch was the last to begin. No stream has two launches that have not ended.
 *
 * <p>
 * One thread.
 */
final class CopyLaunches {

    /** Streams that a kernel knows; copy.cu says so too. */
    static final int MOST_STREAMS = 8;
    /** So often CUDA may refuse a launch. */
    static final int MOST_REFUSALS = 3;

    /** What launches. Calls that CUDA refuses throw a {@link MillraceException}. */
    interface Streams {

        /** Whether all launches in a stream have ended. */
        boolean isIdle(int stream);

        /** Enqueues the kernel in a stream, as the launch of a number there, from 1. */
        void launch(int stream, int number);
    }

    private final CopyMailbox mailbox;
    private final Streams streams;
    private final long atOnceNanos;
    /** By stream: how many there were, and whether the last may not have ended. */
    private final int[] launches;
    private final boolean[] pending;
    private int first;
    private int refusals;

    /**
     * Launches in streams that have had none.
     *
     * @param count       of the streams, 1 to {@link #MOST_STREAMS}
     * @param atOnceNanos how long a launch has to begin, before the next stream is tried
     */
    CopyLaunches(CopyMailbox mailbox, Streams streams, int count, long atOnceNanos) {
        this.mailbox = mailbox;
        this.streams = streams;
        this.atOnceNanos = atOnceNanos;
        launches = new int[count];
        pending = new boolean[count];
    }

    /** How many there were. */
    int count() {
        return Arrays.stream(launches).sum();
    }

    /**
     * Tries each stream that is free, as long as the kernel is waited for and none has begun. If CUDA refuses and none
     * can come any more, {@link CopyMailbox#GONE} is the mailbox's state: it may be asked for again, a few times; then
     * the copy engine makes all copies.
     *
     * @return whether none has begun and one may, so that this is to be called again in a while
     */
    boolean attempt() {
        try {
            for (int i = 0; i < launches.length && isAwaited(); i++) {
                attempt((first + i) % launches.length);
            }
        } catch (MillraceException refused) {
            refusals++;
            if (!anyPending()) { // the state is the kernel's otherwise
                if (refusals < MOST_REFUSALS) {
                    mailbox.stateGoneRelease();
                }
                return false;
            }
        }
        return isAwaited() && (refusals < MOST_REFUSALS || anyPending());
    }

    private void attempt(int stream) {
        pending[stream] = pending[stream] && !streams.isIdle(stream);
        if (pending[stream] || refusals >= MOST_REFUSALS) {
            return;
        }
        streams.launch(stream, launches[stream] + 1);
        launches[stream]++;
        pending[stream] = true;
        long begin = System.nanoTime();
        while (isAwaited() && System.nanoTime() - begin < atOnceNanos) {
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
