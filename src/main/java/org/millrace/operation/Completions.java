package org.millrace.operation;

import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Creates stages for conditions that can only be polled. A single thread polls all conditions, and runs only while
 * conditions are pending.
 */
public final class Completions implements Runnable {

    private static final long FIRST_PARK_NANOS = 20_000;
    private static final long LONGEST_PARK_NANOS = 1_000_000;
    private static final long IDLE_SECONDS = 10;
    private static final Completions ALL = new Completions();
    /**
     * Threads for the program's dependent functions, one for each function that has not returned. The pool is
     * unbounded: ranks of one process may wait for each other in such functions, and would hang in a bounded pool.
     */
    private static final Executor CALLBACKS = new ThreadPoolExecutor(0, Integer.MAX_VALUE, IDLE_SECONDS,
            TimeUnit.SECONDS, new SynchronousQueue<>(), Thread.ofPlatform().daemon().name("callback-", 0).factory());

    /**
     * A stage that runs asynchronous functions on {@link #CALLBACKS}. All stages derived from this stage also run their
     * functions on {@link #CALLBACKS}.
     */
    private static final class Stage<T> extends CompletableFuture<T> {

        @Override
        public <U> CompletableFuture<U> newIncompleteFuture() {
            return new Stage<>();
        }

        @Override
        public Executor defaultExecutor() {
            return CALLBACKS;
        }
    }

    private record Awaited(BooleanSupplier done, CompletableFuture<Void> stage) {

        /**
         * Completes the stage if its condition is true, or if the evaluation of the condition throws an exception. The
         * completion runs on a thread other than the polling thread. Returns whether the stage needs no further
         * polling.
         */
        boolean isOver() {
            try {
                if (!done.getAsBoolean()) {
                    // The stage may be complete before its condition is true, because the program has cancelled it.
                    return stage.isDone();
                }
                stage.completeAsync(() -> null);
            } catch (RuntimeException | Error failure) {
                stage.defaultExecutor().execute(() -> stage.completeExceptionally(failure));
            }
            return true;
        }
    }

    private final Queue<Awaited> awaited = new ConcurrentLinkedQueue<>();
    private @Nullable Thread thread;

    private Completions() {}

    /**
     * {@return a new incomplete stage} Each asynchronous function of the stage runs on a thread that runs no other
     * function, so each function may block.
     */
    public static CompletableFuture<Void> newStage() {
        return new Stage<>();
    }

    /**
     * {@return a stage that completes when a condition becomes true}
     *
     * @param done the condition, polled repeatedly by one thread; an exception from it completes the stage
     *             exceptionally
     */
    public static CompletionStage<Void> of(BooleanSupplier done) {
        Awaited each = new Awaited(done, newStage());
        ALL.add(each);
        return each.stage;
    }

    private synchronized void add(Awaited each) {
        awaited.add(each);
        if (thread == null) {
            thread = Thread.ofPlatform().daemon().name("completions").start(this);
        }
    }

    /**
     * Returns whether the polling thread must stop because no condition is pending. The lock excludes {@link #add}, so
     * that a condition added later starts a new thread.
     */
    private synchronized boolean ends() {
        if (awaited.isEmpty()) {
            thread = null;
        }
        return thread == null;
    }

    /** Polls until no condition is pending. */
    @Override
    public void run() {
        long park = FIRST_PARK_NANOS;
        while (!ends()) {
            park = awaited.removeIf(Awaited::isOver) ? FIRST_PARK_NANOS : Math.min(2 * park, LONGEST_PARK_NANOS);
            LockSupport.parkNanos(park);
        }
    }
}
