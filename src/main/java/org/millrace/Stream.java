package org.millrace;

import java.time.Duration;
import java.util.concurrent.CompletionStage;

/**
 * A queue of operations on a {@link Device} that run one after another, in the order in which they were enqueued.
 * Operations of different streams may overlap.
 */
public interface Stream extends AutoCloseable {

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
