package org.millrace;

import java.time.Duration;
import java.util.concurrent.CompletionStage;

/**
 * A queue of operations on a {@link Device} that run one after another, in the order in which they were enqueued.
 * Operations of different streams may overlap.
 */
public interface DeviceStream extends AutoCloseable {

    /**
     * Whether everything enqueued so far has completed.
     *
     * @return true if the stream is idle
     * @throws MillraceException if an operation of this stream failed
     */
    boolean query();

    /**
     * Waits until everything enqueued so far has completed.
     *
     * @param deadline how long to wait at the most
     * @throws MillraceException if an operation of this stream failed, or if the deadline passed first
     */
    void synchronize(Duration deadline);

    /**
     * Puts an event's mark behind what the stream holds now, instead of where it was before.
     *
     * @param event of the same device
     * @throws IllegalArgumentException if the event is of another kind of device
     */
    void record(Event event);

    /**
     * Lets what is enqueued from now on wait until an event is reached: the mark that was recorded last at the time of
     * this call. An event that was never recorded is not waited for. If an operation before the mark fails, so does
     * this stream.
     *
     * @param event recorded on this or another stream
     * @throws IllegalArgumentException if the event is of another kind of device
     */
    void waitFor(Event event);

    /**
     * Calls a function when all before it is complete; what is enqueued after it waits until it returns. The functions
     * of a stream are called in order. If it throws, that is logged, and the stream goes on. It is not called if an
     * operation before it failed.
     *
     * @param function must not wait for the device, nor use the GPU
     */
    void call(Runnable function);

    /**
     * Begins to record what this stream is given from now on, in place of running it ({@code cudaStreamBeginCapture}):
     * operations of communicators, copies, functions, events. A stream that waits for an event of a captured one is
     * captured from then on, and has to be waited for again, by an event behind what it was given, before the end.
     * Meanwhile nothing can be asked of these streams or waited for, and they cannot wait for what was recorded before:
     * that is an error, and makes the capture invalid.
     *
     * @throws IllegalStateException         if the stream is captured already
     * @throws UnsupportedOperationException on GPUs, where {@link Communicator#plan} does that
     */
    default void beginCapture() {
        throw new UnsupportedOperationException(
                this + " cannot be captured by itself: Communicator.plan captures operations");
    }

    /**
     * Ends the capture that began on this stream. The plan launches all of it again, on any stream of the device: what
     * the others were given runs beside, as their events say. A plan runs once at a time.
     *
     * @return the plan
     * @throws IllegalStateException if no capture began on this stream
     * @throws MillraceException     if the capture is invalid, or a stream of it was not waited for again; it is over
     *                               all the same
     */
    default Plan endCapture() {
        throw new IllegalStateException(this + " is not captured");
    }

    /** {@return whether what this stream is given is recorded, and does not run} */
    default boolean isCapturing() {
        return false;
    }

    /**
     * What was enqueued so far, as a stage: complete when all of it is, exceptionally if an operation of it failed, or
     * one before it. What depends on the stage runs on other threads than the device's. Enqueue operations, then ask:
     * {@code communicator.allReduce(...); stream.completion().thenRun(...)}. What a group that is still open holds is
     * not enqueued yet; an operation by {@link Operand}s returns the stage of its own.
     *
     * @return the stage; it has no value
     */
    default CompletionStage<Void> completion() {
        return Completions.of(this::query);
    }

    /**
     * Waits for what was enqueued and gives the stream back. Reports no failure of an operation: {@link #synchronize}
     * does. Closing twice is allowed.
     */
    @Override
    void close();
}
