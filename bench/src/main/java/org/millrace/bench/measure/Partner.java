package org.millrace.bench.measure;

import java.time.Duration;

/** A second thread, bound to the second core, that runs loops on request. */
public final class Partner implements AutoCloseable {

    private static final Duration DEADLINE = Duration.ofSeconds(30);
    private static final Loop END = count -> 0;

    private final Thread thread;
    private volatile Loop next;
    private volatile long count;
    private volatile long result;
    private volatile Throwable failure;

    /**
     * Starts the thread.
     *
     * @param cores cores to bind it to
     */
    public Partner(Cores cores) {
        thread = Thread.ofPlatform().daemon().name("partner").start(() -> run(cores));
    }

    private void run(Cores cores) {
        cores.pinToSecond();
        while (true) {
            Loop loop = next;
            if (loop == null) {
                Thread.onSpinWait();
                continue;
            }
            if (loop == END) {
                return;
            }
            try {
                result = loop.run(count);
            } catch (Throwable e) {
                failure = e;
            }
            next = null;
        }
    }

    /**
     * Starts a loop there.
     *
     * @param loop  loop to run
     * @param times number of iterations
     */
    public void start(Loop loop, long times) {
        count = times;
        next = loop;
    }

    /**
     * Waits for the loop's end.
     *
     * @return its result
     */
    public long await() {
        long deadline = System.nanoTime() + DEADLINE.toNanos();
        while (next != null) {
            Thread.onSpinWait();
            if (System.nanoTime() - deadline > 0) {
                throw new IllegalStateException(
                        "the other thread has not come back for " + DEADLINE.toSeconds() + " s");
            }
        }
        if (failure != null) {
            throw new IllegalStateException("the other thread failed", failure);
        }
        return result;
    }

    /**
     * Returns a loop of two threads. The other thread's part starts before ours.
     *
     * @param ours   runs on the calling thread
     * @param theirs runs on the other thread, equally often
     * @return both together
     */
    public Loop with(Loop ours, Loop theirs) {
        return times -> {
            start(theirs, times);
            long mine = ours.run(times);
            return await() == Loop.LOST ? Loop.LOST : mine;
        };
    }

    /** {@return the thread, for measurements of its processor time} */
    public long threadId() {
        return thread.threadId();
    }

    @Override
    public void close() {
        next = END;
    }
}
