package org.millrace.device;

import java.time.Duration;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.MillraceException;
import org.millrace.OperationInterruptedException;
import org.millrace.failure.RepeatedFailure;
import org.millrace.operation.Completions;

/**
 * The tasks of a stream. Any thread adds tasks and waits for them. The device's thread runs the tasks in the order of
 * their addition. If a task fails, the later tasks fail for the same reason, until the failure has been reported.
 */
final class TaskQueue {

    /**
     * If the queue has more tasks than this number, the program's thread may help to run them. The device's thread then
     * has enough work even if the program adds no task meanwhile.
     */
    private static final int FAR_BEHIND = 16;
    private static final Waiter[] NO_WAITERS = {};
    /**
     * Maximum number of tasks in a stream. A thread that enqueues another task waits, as with CUDA. Without this limit,
     * a program that enqueues faster than the device works would use more and more memory.
     */
    static final int MAX_TASKS = 16_384;
    /**
     * A thread that waits for room continues when only this number of tasks is left in the queue. The number is half of
     * the maximum, so that the thread is not woken after each task.
     */
    private static final int ROOM = MAX_TASKS / 2;

    /** A thread that waits until a given number of tasks is complete. */
    private record Waiter(Thread thread, long target) {
    }

    private final EmulatedDevice device;
    private final String name;
    private final Queue<StreamTask> queue = new ConcurrentLinkedQueue<>();
    private final AtomicLong enqueued = new AtomicLong();
    private final BooleanSupplier catchesUp = () -> !isFarBehind();
    private final BooleanSupplier hasRoom;
    /** Waiting threads. Each change replaces the array by a changed copy. */
    private volatile Waiter[] waiters = NO_WAITERS;
    private volatile long completed;
    private volatile @Nullable Throwable failure;
    /**
     * Task that is running. Only the device's thread writes this field. Other threads read the field for messages and
     * may see an outdated value.
     */
    private @Nullable StreamTask current;

    TaskQueue(EmulatedDevice device, String name) {
        this.device = device;
        this.name = name;
        hasRoom = () -> enqueued.get() - completed <= ROOM || device.stopped();
    }

    /** Waits while the stream is full. Called before anything else is done for the next task. */
    void awaitRoom() {
        while (enqueued.get() - completed >= MAX_TASKS && !device.isRunByThisThread()) {
            long before = completed;
            if (!await(hasRoom, enqueued.get() - ROOM, device.roomDeadline())
                    && (completed == before || Thread.currentThread().isInterrupted())) {
                String holds = name + " holds " + (enqueued.get() - completed) + " tasks, and ";
                if (Thread.currentThread().isInterrupted()) {
                    throw new OperationInterruptedException(
                            holds + "the thread that waits to enqueue another was interrupted", device.rank(), null,
                            null);
                }
                throw late(holds + "completed none within " + device.roomDeadline().toMillis() + " ms: at most "
                        + MAX_TASKS + " can wait; does one thread issue for several ranks, or is a rank missing?");
            }
        }
    }

    void add(StreamTask task) {
        enqueued.incrementAndGet();
        queue.add(task);
        // The device stores its flag before it skips the tasks in the queue. This thread adds the task before it
        // reads the flag. At least one of the two threads therefore skips the task (Dekker).
        if (device.stopped()) {
            skipAll();
        }
        device.wake();
    }

    /** Continues the oldest task. Device's thread only. */
    int progress() {
        if (current == null) {
            current = queue.poll();
            if (current == null) {
                return 0;
            }
        }
        int work = 0;
        try {
            Throwable reason = failure;
            if (reason == null) {
                work = current.progress();
                if (!current.done()) {
                    return work;
                }
            } else {
                current.skip(reason);
            }
        } catch (Throwable thrown) {
            failure = thrown;
            leave(current, thrown);
        }
        current = null;
        complete();
        return work + 1;
    }

    /**
     * Skips a task that has thrown an exception and is not done. The JVM may throw the exception for an access to
     * unmapped memory late, at a place where the task has no handler. The task must be done in any case, because other
     * threads wait for it.
     */
    private static void leave(StreamTask task, Throwable reason) {
        if (!task.done()) {
            task.skip(reason);
        }
    }

    /**
     * Makes all tasks in the queue fail, after the device has stopped and no thread runs them. Callable from any
     * thread.
     */
    void skipAll() {
        synchronized (queue) {
            for (StreamTask task = current == null ? queue.poll() : current; task != null; task = queue.poll()) {
                Throwable reason = failure;
                if (reason == null) {
                    reason = new MillraceException(name
                            + ": the device has stopped, because its communicator was closed, and runs no more tasks");
                    failure = reason;
                }
                current = null;
                try {
                    task.skip(reason);
                } catch (Throwable thrown) {
                    failure = thrown;
                }
                complete();
            }
        }
    }

    private void complete() {
        // The fields completed and waiters are volatile. This thread stores completed and then reads waiters. A waiting
        // thread adds itself to waiters and then reads completed. At least one of the two threads therefore sees the
        // other thread's store (Dekker).
        long now = completed + 1;
        completed = now;
        for (Waiter waiter : waiters) {
            if (waiter.target <= now && waiter.thread != Thread.currentThread()) {
                LockSupport.unpark(waiter.thread);
            }
        }
    }

    boolean isFarBehind() {
        return enqueued.get() - completed > FAR_BEHIND;
    }

    BooleanSupplier catchesUp() {
        return catchesUp;
    }

    long enqueued() {
        return enqueued.get();
    }

    long completed() {
        return completed;
    }

    /** Returns whether all tasks that were added so far are complete or were skipped. */
    boolean isIdle() {
        long target = enqueued.get();
        return completed >= target;
    }

    /**
     * Waits until all tasks that were added so far are complete or were skipped. Throws if the deadline passes first.
     */
    void await(Duration deadline) {
        long target = enqueued.get();
        if (completed >= target) {
            return;
        }
        if (!await(() -> completed >= target, target, deadline)) {
            if (Thread.currentThread().isInterrupted()) {
                throw new OperationInterruptedException(name + ": interrupted while waiting for its operations",
                        device.rank(), null, () -> Completions.of(() -> completed >= target));
            }
            StreamTask first = current;
            throw late(name + ": its operations have not completed within " + deadline.toMillis() + " ms"
                    + (first == null ? "" : "; the first of them: " + first));
        }
    }

    /**
     * Waits for a condition. Returns false if the deadline passes, or if the thread is interrupted.
     *
     * @param done   condition to wait for
     * @param target number of completed tasks that makes {@code done} true
     */
    private boolean await(BooleanSupplier done, long target, Duration deadline) {
        Waiter waiter = new Waiter(Thread.currentThread(), target);
        add(waiter);
        try {
            return device.await(done, TimeUnit.NANOSECONDS.convert(deadline));
        } finally {
            remove(waiter);
        }
    }

    private DeadlineException late(String text) {
        return new DeadlineException(text, device.rank(), CommunicatorException.NO_RANK, null, null);
    }

    private synchronized void add(Waiter waiter) {
        Waiter[] all = Arrays.copyOf(waiters, waiters.length + 1);
        all[all.length - 1] = waiter;
        waiters = all;
    }

    private synchronized void remove(Waiter waiter) {
        waiters = waiters.length == 1 ? NO_WAITERS
                : Arrays.stream(waiters).filter(each -> each != waiter).toArray(Waiter[]::new);
    }

    /** Makes the tasks in the queue fail. Threads that wait for these tasks receive {@code thrown}. */
    void fail(Throwable thrown) {
        failure = thrown;
    }

    /** If the stream has failed, throws the failure. Each failure is thrown once. */
    void throwFailure() {
        Throwable thrown = failure;
        if (thrown != null) {
            failure = null;
            throw RepeatedFailure.of(thrown.getMessage(), thrown);
        }
    }
}
