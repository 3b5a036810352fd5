package org.millrace.device;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.MillraceException;
import org.millrace.Plan;
import org.millrace.agent.Waiting;
import org.millrace.device.EmulatedEvent.EventMark;
import org.millrace.device.StreamCapture.CapturedMark;
import org.millrace.device.StreamTask.Work;
import org.millrace.failure.RepeatedFailure;
import org.millrace.operation.Completions;

/**
 * A stream of the emulated device. An operation on the stream becomes a task. While the stream is captured, the
 * operation becomes part of a plan instead.
 */
public final class EmulatedStream implements DeviceStream {

    private static final Logger LOG = LogManager.getLogger(EmulatedStream.class);

    private final EmulatedDevice device;
    private final String name;
    private final TaskQueue tasks;
    /** Capture that receives the stream's operations; null if the stream is not captured. */
    private volatile @Nullable StreamCapture capture;

    EmulatedStream(EmulatedDevice device, String name) {
        this.device = device;
        this.name = name;
        tasks = new TaskQueue(device, name);
    }

    TaskQueue tasks() {
        return tasks;
    }

    void enqueue(StreamTask task) {
        refuseIfCaptured("this operation cannot be captured");
        tasks.add(task);
    }

    @Override
    public void beginCapture() {
        device.check(this);
        synchronized (this) {
            if (capture != null) {
                throw new IllegalStateException(name + " is captured already");
            }
            capture = new StreamCapture(device, this);
        }
    }

    @Override
    public Plan endCapture() {
        StreamCapture under = capture;
        if (under == null) {
            throw new IllegalStateException(name + " is not captured");
        }
        return under.end(this);
    }

    @Override
    public boolean isCapturing() {
        return capture != null;
    }

    @Nullable
    StreamCapture capture() {
        return capture;
    }

    void captureEnded(StreamCapture ended) {
        synchronized (this) {
            capture = capture == ended ? null : capture;
        }
    }

    /**
     * Adds an operation to the capture if the stream is captured. Returns false if the stream is not captured; the
     * caller must then enqueue the operation.
     */
    public boolean captures(CapturedOperation operation) {
        StreamCapture under = capture;
        return under != null && under.add(this, operation);
    }

    /**
     * Throws if the stream is captured, because the requested operation cannot be captured. The capture becomes
     * invalid, as on a GPU.
     */
    private void refuseIfCaptured(String problem) {
        StreamCapture under = capture;
        if (under != null) {
            under.refuse(name + " is captured: " + problem);
        }
    }

    @Override
    public void record(Event event) {
        StreamCapture under = capture;
        CapturedMark captured = under == null ? null : under.mark(this);
        if (captured != null) {
            EmulatedEvent.of(event).captured(captured);
            return;
        }
        tasks.awaitRoom();
        enqueue(EmulatedEvent.of(event).newMark(device));
    }

    @Override
    public void waitFor(Event event) {
        CapturedMark captured = EmulatedEvent.of(event).captured();
        if (captured != null) {
            join(captured);
            return;
        }
        EventMark mark = EmulatedEvent.of(event).latest();
        if (mark != null) {
            refuseIfCaptured("it cannot wait for an event that was recorded outside of the capture");
            tasks.awaitRoom();
            mark.add(device);
            enqueue(new Work(() -> isReached(mark)));
        }
    }

    private void join(CapturedMark mark) {
        synchronized (this) {
            if (capture != mark.capture()) {
                refuseIfCaptured("it cannot wait for an event of another capture");
            }
            mark.capture().waitFor(this, mark);
            capture = mark.capture();
        }
    }

    /**
     * Returns whether the other stream has reached a mark that this stream waits for. A stream can only wait for marks
     * that were recorded earlier. Streams therefore cannot wait for each other in a circle.
     */
    private static boolean isReached(EventMark mark) {
        if (mark.done() && mark.failure() != null) {
            throw RepeatedFailure.of("what this stream waits for failed: " + mark.failure().getMessage(),
                    mark.failure());
        }
        return mark.done();
    }

    @Override
    public void call(Runnable function) {
        Objects.requireNonNull(function, "the function that the stream calls is null");
        if (captures(target -> target.call(function))) {
            return;
        }
        tasks.awaitRoom();
        enqueue(new Work(() -> {
            if (!device.mayCallFunctions()) {
                return false;
            }
            try {
                device.callFunction(function);
                // A failed task of the other stream does not affect this stream, as on a GPU.
            } catch (RuntimeException | Error thrown) {
                LOG.error("{}: a host function failed; the stream continues", this, thrown);
            }
            return true;
        }));
    }

    @Override
    public CompletionStage<Void> completion() {
        refuseIfCaptured("there is nothing that completes; call completion() after Plan.launch");
        tasks.awaitRoom();
        CompletableFuture<Void> stage = Completions.newStage();
        enqueue(new Work(() -> {
            stage.completeAsync(() -> null);
            return true;
        }) {
            @Override
            public void skip(Throwable reason) {
                super.skip(reason);
                stage.defaultExecutor()
                        .execute(() -> stage.completeExceptionally(RepeatedFailure.of(reason.getMessage(), reason)));
            }
        });
        return stage;
    }

    @Override
    public boolean query() {
        refuseIfCaptured("nothing runs, and nothing can be queried or awaited");
        if (!tasks.isIdle()) {
            return false;
        }
        tasks.throwFailure();
        return true;
    }

    @Override
    public void synchronize(Duration deadline) {
        Waiting.requireNotNegative("synchronize", deadline);
        refuseIfCaptured("nothing runs, and nothing can be queried or awaited");
        tasks.await(deadline);
        tasks.throwFailure();
    }

    /**
     * Closes the stream after all tasks that were enqueued so far have run or were skipped. This method does not wait
     * for the tasks.
     */
    public void closeWhenDone() {
        if (capture != null) {
            // A captured stream contains only captured operations, so it can be closed immediately.
            device.unregister(this);
            return;
        }
        enqueue(new Work(() -> {
            device.unregister(this);
            return true;
        }) {
            @Override
            public void skip(Throwable reason) {
                progress();
            }
        });
    }

    @Override
    public void close() {
        if (!device.isRegistered(this)) {
            return;
        }
        StreamCapture under = capture;
        if (under != null) {
            under.leave(this);
            captureEnded(under);
        }
        try {
            // Failures of tasks are reported to threads that synchronize, and not to a thread that closes the stream.
            tasks.await(device.closeDeadline());
        } catch (MillraceException notDone) {
            // The caller may free the operands next, so the remaining tasks must not run. The device keeps the stream
            // until the device's thread has skipped these tasks. Without this skip, a thread that waits for such a task
            // would wait forever.
            tasks.fail(notDone);
            closeWhenDone();
            throw notDone;
        }
        device.unregister(this);
    }

    @Override
    public String toString() {
        return name;
    }

    /** An operation on a captured stream. Each launch of the plan enqueues it again. */
    public interface CapturedOperation {

        /**
         * Checks that the operation can be enqueued. A launch of the plan first calls this method for all operations,
         * and then enqueues them.
         *
         * @throws RuntimeException if the operation can no longer be enqueued
         */
        default void check() {
            // Does nothing by default, because the device's own operations can always be enqueued.
        }

        void enqueue(DeviceStream stream);

        /** Releases the operation's resources. Called when the operation will not be enqueued again. */
        default void release() {
            // Does nothing by default, because the device's own operations have no resources.
        }
    }
}
