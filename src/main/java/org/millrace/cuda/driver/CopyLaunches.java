package org.millrace.cuda.driver;

import java.util.Arrays;
import org.millrace.MillraceException;
import org.millrace.abi.kernel.CopyMailbox;

/**
 * Launches of a kernel, each in one of several streams. Streams share a few hardware queues of the GPU. A launch may
 * therefore be queued behind one of the program's kernels, and the program's kernel may wait for the copies. If a
 * launch does not start the kernel within a short time, the kernel is launched in the next stream, too. The first
 * kernel that starts makes the copies. Kernels that start later end immediately.
 *
 * <p>
 * The first attempt uses the stream that started the kernel last time. A stream never has two unfinished launches.
 *
 * <p>
 * Used by one thread.
 */
final class CopyLaunches {

    /** Maximum number of streams; the same number as in copy.cu. */
    static final int MAX_STREAMS = 8;
    /** Number of refused launches after which the kernel is not launched again. */
    static final int MAX_REFUSALS = 3;

    /**
     * Streams that are available for launches. A method throws a {@link MillraceException} if CUDA refuses the call.
     */
    interface Streams {

        /** Returns whether the kernels of all launches in a stream have ended. */
        boolean isIdle(int stream);

        /**
         * Launches the kernel in a stream.
         *
         * @param number number of this launch in the stream, from 1; 0 follows {@link Integer#MAX_VALUE}, because
         *               copy.cu stores the number and another bit in 32 bits
         */
        void launch(int stream, int number);
    }

    private final CopyMailbox mailbox;
    private final Streams streams;
    private final long startNanos;
    /**
     * Number of the last launch in each stream. The next array states whether the stream's last launched kernel may
     * still run.
     */
    private final int[] numbers;
    private final boolean[] pending;
    private boolean launched;
    private int first;
    private int refusals;

    /**
     * @param count      number of streams, 1 to {@link #MAX_STREAMS}
     * @param startNanos time to wait for the start of a launched kernel before the next stream is tried, in nanoseconds
     */
    CopyLaunches(CopyMailbox mailbox, Streams streams, int count, long startNanos) {
        this(mailbox, streams, count, startNanos, 0);
    }

    /** @param last number of the last launch in each stream; 0, or in tests a number before the numbers wrap around */
    CopyLaunches(CopyMailbox mailbox, Streams streams, int count, long startNanos, int last) {
        this.mailbox = mailbox;
        this.streams = streams;
        this.startNanos = startNanos;
        numbers = new int[count];
        Arrays.fill(numbers, last);
        pending = new boolean[count];
    }

    /** Returns whether CUDA has accepted a launch. */
    boolean hasLaunched() {
        return launched;
    }

    /**
     * Launches the kernel in one free stream after another, as long as no launched kernel has started. If CUDA refuses
     * a launch and all earlier launches have ended, sets the mailbox's state to {@link CopyMailbox#GONE}. The kernel
     * may then be requested again. After {@link #MAX_REFUSALS} refusals the state stays {@link CopyMailbox#ABSENT}, and
     * the copy engine makes all copies.
     *
     * @return true if no kernel has started but a launched kernel can still start; the caller must then call this
     *         method again after a while
     */
    boolean attempt() {
        try {
            for (int i = 0; i < numbers.length && isAwaited(); i++) {
                attempt((first + i) % numbers.length);
            }
        } catch (MillraceException refused) {
            refusals++;
            // While a launch is unfinished, only the kernel may write the state.
            if (!anyPending()) {
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
        int next = numbers[stream] + 1 & Integer.MAX_VALUE;
        streams.launch(stream, next);
        numbers[stream] = next;
        launched = true;
        pending[stream] = true;
        long begin = System.nanoTime();
        while (isAwaited() && System.nanoTime() - begin < startNanos) {
            Thread.yield();
        }
        if (!isAwaited()) {
            first = mailbox.streamPlain() % numbers.length;
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
