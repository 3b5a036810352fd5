package org.millrace.device;

import java.time.Duration;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.MillraceException;

/**
 * The tasks of a stream, and how many of them are complete. Any thread adds some, and waits; the device's thread runs
 * them in order. A task that fails makes the tasks behind it fail with it, until somebody has been told.
 */
final class TaskQueue {

    /** So many tasks behind those who enqueue a stream holds enough for the thread that runs it. */
    private static final int FAR_BEHIND = 16;
    private static final Waiter[] NOBODY = {};
    /**
     * So many tasks a stream holds; a thread that has more to enqueue waits, as with CUDA: a program that is ahead of
     * its device for ever would else fill the memory.
     */
    static final int MAX_TASKS = 16_384;
    /** Half of the bound, so that a thread that waits is not woken for each task. */
    private static final int ROOM = MAX_TASKS / 2;

    /** A thread that waits until so many tasks are complete. */
    private record Waiter(Thread thread, long target) {
    }

    private final EmulatedDevice device;
    private final String name;
    private final Queue<StreamTask> queue = new ConcurrentLinkedQueue<>();
    private final AtomicLong enqueued = new AtomicLong();
    private final BooleanSupplier catchesUp = () -> !isFarBehind();
    private final BooleanSupplier hasRoom;
    /** Copied when one comes or goes. */
    private volatile Waiter[] waiters = NOBODY;
    private volatile long completed;
    private volatile @Nullable Throwable failure;
    /** The device's thread alone; others look at it for messages, and may see an old one. */
    private @Nullable StreamTask current;

    TaskQueue(EmulatedDevice device, String name) {
        this.device = device;
        this.name = name;
        hasRoom = () -> enqueued.get() - completed <= ROOM || device.stopped();
    }

    /** Waits while the stream holds as many tasks as it may: before anything is done for the next one. */
    void awaitRoom() {
        while (enqueued.get() - completed >= MAX_TASKS && !device.isRunByThisThread()) {
            long before = completed;
            if (!device.await(hasRoom, device.roomDeadline().toNanos())
                    && (completed == before || Thread.currentThread().isInterrupted())) {
                String holds = name + " holds " + (enqueued.get() - completed) + " operations, and ";
                if (Thread.currentThread().isInterrupted()) {
                    throw new MillraceException(holds + "the thread that waits to enqueue another was interrupted");
                }
                throw late(holds + "completed none within " + device.roomDeadline().toSeconds() + " s: at most "
                        + MAX_TASKS + " can wait; does one thread issue for several ranks, or is one not there?");
            }
        }
    }

    void add(StreamTask task) {
        enqueued.incrementAndGet();
        queue.add(task);
        // The device sets its flag before it skips what is in the queue, and the task is in the queue before the flag
        // is read: one of the two skips it (Dekker).
        if (device.stopped()) {
            skipAll();
        }
    }

    /** Runs the oldest task on; called by the device's thread alone. */
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
     * A fault of memory that is gone surfaces anywhere behind the access, also where a task has nothing to catch it:
     * who waits until the task has left must not wait for ever.
     */
    private static void leave(StreamTask task, Throwable reason) {
        if (!task.done()) {
            task.skip(reason);
        }
    }

    /** Makes what is enqueued fail, as nobody runs it: when the device has stopped, on any thread. */
    void skipAll() {
        synchronized (queue) {
            for (StreamTask task = current == null ? queue.poll() : current; task != null; task = queue.poll()) {
                Throwable reason = failure;
                if (reason == null) {
                    reason = new MillraceException(name
                            + ": the device has stopped, because its communicator was closed, and runs nothing any "
                            + "more");
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
        // Volatile, as are the waiters that are read next: one adds itself before it reads `completed`, so one of the
        // two sees the other (Dekker).
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

    /** Whether all that was added so far is complete or was skipped. */
    boolean isIdle() {
        long target = enqueued.get();
        return completed >= target;
    }

    /** Waits until all that was added so far is complete or was skipped; throws if it is not in time. */
    void await(Duration deadline) {
        long target = enqueued.get();
        if (completed >= target) {
            return;
        }
        Waiter waiter = new Waiter(Thread.currentThread(), target);
        add(waiter);
        try {
            if (!device.await(() -> completed >= target, deadline.toNanos())) {
                String left = (target - completed) + " operations";
                if (Thread.currentThread().isInterrupted()) {
                    throw new MillraceException(name + ": interrupted while waiting for " + left);
                }
                StreamTask first = current;
                throw late(name + ": " + left + " have not completed within " + deadline.toMillis() + " ms"
                        + (first == null ? "" : "; the first of them: " + first));
            }
        } finally {
            remove(waiter);
        }
    }

    private DeadlineException late(String text) {
        return new DeadlineException(text, device.rank(), CommunicatorException.NOBODY, null, null);
    }

    private synchronized void add(Waiter waiter) {
        Waiter[] all = Arrays.copyOf(waiters, waiters.length + 1);
        all[all.length - 1] = waiter;
        waiters = all;
    }

    private synchronized void remove(Waiter waiter) {
        waiters = waiters.length == 1 ? NOBODY
                : Arrays.stream(waiters).filter(each -> each != waiter).toArray(Waiter[]::new);
    }

    /** Makes the tasks that are enqueued fail, and the threads that wait for them are told why. */
    void fail(Throwable thrown) {
        failure = thrown;
    }

    /** Tells of a failure, once. */
    void throwFailure() {
        Throwable thrown = failure;
        if (thrown != null) {
            failure = null;
            throw MillraceException.again(thrown.getMessage(), thrown);
        }
    }
}
