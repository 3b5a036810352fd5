package org.millrace.device;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.Event;
import org.millrace.MillraceException;
import org.millrace.OperationInterruptedException;
import org.millrace.agent.Waiting;
import org.millrace.device.StreamCapture.CapturedMark;
import org.millrace.failure.RepeatedFailure;
import org.millrace.operation.Completions;

/**
 * An event of the emulated device. Each recording creates a new {@link EventMark}. A new recording therefore does not
 * affect a thread that waits for an older recording.
 */
final class EmulatedEvent implements Event {

    private final EmulatedDevice device;
    private volatile @Nullable EventMark latest;
    /** Mark of the newest recording if the recording belongs to a capture; null otherwise. */
    private volatile @Nullable CapturedMark captured;

    EmulatedEvent(EmulatedDevice device) {
        this.device = device;
    }

    static EmulatedEvent of(Event event) {
        if (event instanceof EmulatedEvent host) {
            return host;
        }
        throw new IllegalArgumentException(
                "event " + event + " does not belong to an emulated device: make it with the device's newEvent()");
    }

    /**
     * Begins a new recording of this event, and returns its mark.
     *
     * @param by device whose stream will reach the mark
     */
    EventMark newMark(EmulatedDevice by) {
        EventMark mark = new EventMark(by);
        captured = null;
        latest = mark;
        return mark;
    }

    void captured(CapturedMark mark) {
        captured = mark;
    }

    @Nullable
    CapturedMark captured() {
        return captured;
    }

    private void refuseIfCaptured() {
        if (captured != null) {
            throw new MillraceException("the event was recorded while its stream was captured: it is reached when a"
                    + " plan runs, and cannot be queried or awaited by a program");
        }
    }

    EventMark latest() {
        return latest;
    }

    @Override
    public boolean query() {
        refuseIfCaptured();
        EventMark mark = latest;
        return mark == null || isReached(mark);
    }

    /**
     * Returns whether the newest recording was reached. Unlike {@link #query}, does not throw the failure of an earlier
     * task. If the result is true, all earlier tasks have left the stream: each is complete or has failed.
     */
    boolean isReachedOrFailed() {
        EventMark mark = latest;
        return mark == null || mark.done();
    }

    private static boolean isReached(EventMark mark) {
        if (!mark.done()) {
            return false;
        }
        Throwable failure = mark.failure();
        if (failure != null) {
            throw RepeatedFailure.of(failure.getMessage(), failure);
        }
        return true;
    }

    @Override
    public void synchronize(Duration deadline) {
        Waiting.requireNotNegative("synchronize", deadline);
        refuseIfCaptured();
        EventMark mark = latest;
        if (mark == null || isReached(mark)) {
            return;
        }
        if (!await(mark, deadline)) {
            if (Thread.currentThread().isInterrupted()) {
                throw new OperationInterruptedException("the thread was interrupted while it waited for an event",
                        device.rank(), null, () -> Completions.of(mark::done));
            }
            throw new DeadlineException(
                    "the event was not reached within " + deadline.toMillis()
                            + " ms: what was enqueued before it is not complete",
                    device.rank(), CommunicatorException.NO_RANK, null, null);
        }
        isReached(mark);
    }

    private boolean await(EventMark mark, Duration deadline) {
        Thread self = Thread.currentThread();
        mark.add(self);
        try {
            return mark.device.await(mark::done, TimeUnit.NANOSECONDS.convert(deadline));
        } finally {
            mark.remove(self);
        }
    }

    @Override
    public Duration elapsedSince(Event earlier) {
        EmulatedEvent other = of(earlier);
        return Duration.ofNanos(reachedNanos() - other.reachedNanos());
    }

    private long reachedNanos() {
        refuseIfCaptured();
        EventMark mark = latest;
        if (mark == null || !isReached(mark)) {
            throw new MillraceException(
                    "the event has no time: it " + (mark == null ? "was not recorded" : "is not reached"));
        }
        return mark.nanos();
    }

    @Override
    public void close() {
        // Nothing is released here, because the garbage collector frees everything that the event refers to.
    }

    /**
     * One recording of an event, as a task of a stream. When the device's thread reaches the task, {@code done} becomes
     * true. Any thread may read {@code done}. A thread that reads true also sees everything that the stream did before
     * (volatile).
     */
    static final class EventMark implements StreamTask {

        /** Device of the stream that reaches the mark. */
        private final EmulatedDevice device;
        private long nanos;
        private Throwable failure;
        private volatile boolean done;
        private volatile List<Thread> waiting = List.of();
        /** Other devices with a stream that waits for the mark. */
        private volatile List<EmulatedDevice> waitingDevices = List.of();

        EventMark(EmulatedDevice device) {
            this.device = device;
        }

        @Override
        public int progress() {
            nanos = System.nanoTime();
            reach();
            return 1;
        }

        @Override
        public void skip(Throwable reason) {
            failure = reason;
            reach();
        }

        /**
         * Marks the recording as reached and wakes all waiting threads and devices. A waiting thread or device first
         * adds itself and then reads {@code done}. This method first stores {@code done} and then reads the lists.
         * Therefore at least one of the two sides sees the other side's store (Dekker).
         */
        private void reach() {
            done = true;
            waiting.forEach(LockSupport::unpark);
            waitingDevices.forEach(EmulatedDevice::wake);
        }

        /** Adds another device with a stream that waits for the mark. The device is woken when the mark is reached. */
        synchronized void add(EmulatedDevice waits) {
            if (waits != device && !done && !waitingDevices.contains(waits)) {
                List<EmulatedDevice> more = new ArrayList<>(waitingDevices);
                more.add(waits);
                waitingDevices = List.copyOf(more);
            }
        }

        /** Adds a thread that waits for the mark. The thread is unparked when the mark is reached. */
        synchronized void add(Thread thread) {
            List<Thread> more = new ArrayList<>(waiting);
            more.add(thread);
            waiting = List.copyOf(more);
        }

        synchronized void remove(Thread thread) {
            waiting = waiting.stream().filter(each -> each != thread).toList();
        }

        @Override
        public boolean done() {
            return done;
        }

        /**
         * Returns the reason why the tasks before the mark failed; null if they succeeded. Valid only if {@link #done}.
         */
        Throwable failure() {
            return failure;
        }

        /** Returns the time when the stream reached the mark. Valid only if {@link #done} and without a failure. */
        long nanos() {
            return nanos;
        }
    }
}
