package org.millrace;

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
 * Creates stages for conditions that can only be polled. One thread polls, and exists only while conditions are
 * pending. For implementers of {@link DeviceStream}, not for programs.
 */
public final class Completions implements Runnable {

    private static final long FIRST_PARK_NANOS = 20_000;
    private static final long LONGEST_PARK_NANOS = 1_000_000;
    private static final long IDLE_SECONDS = 10;
    private static final Completions ALL = new Completions();
    /**
     * Threads for the program's functions, one for each function that has not returned. A bounded pool would hang ranks
     * of one process that wait for each other in such functions.
     */
    private static final Executor CALLBACKS = new ThreadPoolExecutor(0, Integer.MAX_VALUE, IDLE_SECONDS,
            TimeUnit.SECONDS, new SynchronousQueue<>(), Thread.ofPlatform().daemon().name("callback-", 0).factory());

    /** A stage that runs asynchronous functions on {@link #CALLBACKS}, as do all stages that depend on it. */
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

        /** Completes the stage if possible. The polling thread continues with other stages. */
        boolean isOver() {
            try {
                if (!done.getAsBoolean()) {
                    return stage.isDone(); // cancelled
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
     * {@return a new stage that is not complete. Its asynchronous functions run on threads of their own, so that a
     * function may block}
     */
    public static CompletableFuture<Void> newStage() {
        return new Stage<>();
    }

    /**
     * {@return a stage that completes when a condition becomes true}
     *
     * @param done polled repeatedly by one thread; an exception from it completes the stage exceptionally
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

    /** Ends the thread if no condition is pending, before another thread can add one. */
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
