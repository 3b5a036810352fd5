package org.millrace;

import java.time.Duration;
import java.util.concurrent.CompletionStage;

/**
 * A queue of operations on a {@link Device}, which run one after another, in the order of their enqueueing. Operations
 * of different streams may overlap.
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
     * @param deadline maximum time to wait
     * @throws MillraceException if an operation of this stream failed, or if the deadline passed first
     */
    void synchronize(Duration deadline);

    /**
     * Records an event behind the stream's current work. This replaces the event's earlier mark.
     *
     * @param event event of the same device
     * @throws IllegalArgumentException if the event belongs to another kind of device
     */
    void record(Event event);

    /**
     * Makes all later operations wait for an event: for the mark recorded last at the time of this call. An event that
     * was never recorded causes no wait. If an operation before the mark fails, so does this stream.
     *
     * @param event recorded on this or another stream
     * @throws IllegalArgumentException if the event belongs to another kind of device
     */
    void waitFor(Event event);

    /**
     * Calls a function when all earlier work is complete. Later operations wait until it returns. The functions of a
     * stream are called in order. An exception is logged, and the stream continues. The function is not called if an
     * earlier operation failed.
     *
     * @param function must not wait for the device, nor use the GPU
     */
    void call(Runnable function);

    /**
     * Begins to record later work instead of running it ({@code cudaStreamBeginCapture}): operations of communicators,
     * copies, functions, events. A stream that waits for an event of a captured stream is captured from then on. Before
     * the end, the stream on which the capture began must wait for the work of each further stream, by an event behind
     * that work. During the capture these streams cannot be queried or waited for, and they cannot wait for earlier
     * events. Such a call is an error, and makes the capture invalid.
     *
     * @throws IllegalStateException         if the stream is captured already
     * @throws UnsupportedOperationException on GPUs, where {@link Communicator#plan} is available instead
     */
    default void beginCapture() {
        throw new UnsupportedOperationException(
                this + " cannot be captured by itself: Communicator.plan captures operations");
    }

    /**
     * Ends the capture that began on this stream. The plan launches the recorded work again, on any stream of the
     * device. Work of the other streams runs concurrently, as its events allow. A plan runs once at a time.
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
     * Returns a stage for the work that was enqueued so far. It completes when all of that work is complete. It
     * completes exceptionally if an operation of that work failed, or an operation before it. Dependent functions run
     * on other threads than the device's. Enqueue operations first, then call this:
     * {@code communicator.allReduce(...); stream.completion().thenRun(...)}. The operations of an open group are not
     * enqueued yet. An operation by {@link Operand}s returns its own stage.
     *
     * @return the stage; it has no value
     */
    default CompletionStage<Void> completion() {
        return Completions.of(this::query);
    }

    /**
     * Waits for the enqueued work and releases the stream. Failures of operations are reported by {@link #synchronize},
     * not here. Closing twice is allowed.
     */
    @Override
    void close();
}
