package org.millrace;

import java.time.Duration;
import java.util.concurrent.CompletionStage;
import org.millrace.operation.Completions;

/**
 * A queue of operations on a {@link Device}. The operations run one after another, in the order of their enqueueing.
 * Operations of different streams may overlap.
 */
public interface DeviceStream extends AutoCloseable {

    /**
     * Checks whether all enqueued operations are complete.
     *
     * @return true if the stream is idle
     * @throws MillraceException if an operation of this stream failed
     */
    boolean query();

    /**
     * Waits until all enqueued operations are complete.
     *
     * @param deadline maximum time to wait, 0 or more
     * @throws IllegalArgumentException if the deadline is negative
     * @throws MillraceException        if an operation of this stream failed, or if the deadline passed first
     */
    void synchronize(Duration deadline);

    /**
     * Places an event's mark after the work that is in the stream now. The mark replaces the event's earlier mark.
     *
     * @param event event of the same device
     * @throws IllegalArgumentException if the event belongs to another kind of device
     */
    void record(Event event);

    /**
     * Makes all later operations of this stream wait for the mark that the event has at this call. A later mark of the
     * event does not affect them. An event that was never recorded causes no wait. If an operation before the mark
     * fails, this stream fails, too.
     *
     * @param event event recorded on this or another stream
     * @throws IllegalArgumentException if the event belongs to another kind of device
     */
    void waitFor(Event event);

    /**
     * Enqueues a call of a function, which runs when all earlier work is complete. Later operations wait until the
     * function returns. The functions of a stream are called in the order of their enqueueing. An exception from a
     * function is logged, and the stream continues. The function is not called if an earlier operation failed.
     *
     * @param function function that must neither wait for the device nor use the GPU
     */
    void call(Runnable function);

    /**
     * Begins to record later work instead of running it ({@code cudaStreamBeginCapture}): operations of communicators,
     * copies, functions and events. A stream that waits for an event of a captured stream is captured from then on.
     * Every other captured stream must record an event after its work. The stream on which the capture began must wait
     * for these events before the capture ends. During the capture, no thread may query a captured stream or wait for
     * it. A captured stream must not wait for an event recorded before the capture. Each such call is an error and
     * makes the capture invalid.
     *
     * @throws IllegalStateException         if the stream is captured already
     * @throws UnsupportedOperationException on GPUs, where {@link Communicator#plan} is available instead
     */
    default void beginCapture() {
        throw new UnsupportedOperationException(
                this + " cannot be captured by itself: Communicator.plan captures operations");
    }

    /**
     * Ends the capture that began on this stream. The returned plan launches the recorded work again, on any stream of
     * the device. The work of different captured streams runs concurrently, unless the recorded events require an
     * order. Two launches of a plan never overlap.
     *
     * @return the plan
     * @throws IllegalStateException if no capture began on this stream
     * @throws MillraceException     if the capture is invalid, or if this stream does not wait for the work of another
     *                               captured stream; the capture has ended in either case
     */
    default Plan endCapture() {
        throw new IllegalStateException(this + " is not captured");
    }

    /** {@return whether this stream records its work instead of running it} */
    default boolean isCapturing() {
        return false;
    }

    /**
     * Returns a stage for the work enqueued so far. The stage completes when all of that work is complete. It completes
     * exceptionally if an operation of that work, or an earlier operation, failed. Dependent functions do not run on
     * the threads of the device. Enqueue operations before this call:
     * {@code communicator.allReduce(...); stream.completion().thenRun(...)}. The operations of an open group are not
     * enqueued yet. A method with {@link Operand} parameters returns the stage of its operation.
     *
     * @return the stage; it has no value
     */
    default CompletionStage<Void> completion() {
        return Completions.of(this::query);
    }

    /**
     * Waits for the enqueued work and releases the stream. Failures of operations are reported by {@link #synchronize},
     * not by this method. An interrupted thread does not wait: incomplete work is given up, and the communicator of
     * this work fails. Closing twice is allowed.
     */
    @Override
    void close();
}
