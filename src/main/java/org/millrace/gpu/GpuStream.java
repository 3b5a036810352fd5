package org.millrace.gpu;

import java.time.Duration;
import org.millrace.Event;
import org.millrace.MillraceException;
import org.millrace.Stream;
import org.millrace.agent.Waiting;
import org.millrace.cuda.CudaException;
import org.millrace.cuda.CudaStream;

/** A CUDA stream that fails with its device's communicators: a kernel that waits for a lost rank would never tell. */
final class GpuStream implements Stream {

    private final GpuDevice device;
    private final CudaStream cuda;

    GpuStream(GpuDevice device, CudaStream cuda) {
        this.device = device;
        this.cuda = cuda;
    }

    CudaStream cuda() {
        return cuda;
    }

    @Override
    public boolean query() {
        // In this order: kernels of a communicator that was aborted end as if they had completed.
        boolean done = isIdle();
        device.throwIfFailed();
        return done;
    }

    private boolean isIdle() {
        try {
            return cuda.query();
        } catch (CudaException broken) {
            device.fail(broken);
            throw broken;
        }
    }

    @Override
    public void synchronize(Duration deadline) {
        if (!Waiting.until(this::query, deadline)) {
            throw new MillraceException("what " + this + " holds had not completed after " + deadline.toMillis()
                    + " ms: see whether every rank has enqueued the same operations, and abort the communicator to"
                    + " end them");
        }
    }

    @Override
    public void record(Event event) {
        cuda.record(event);
    }

    @Override
    public void waitFor(Event event) {
        cuda.waitFor(event);
    }

    @Override
    public void call(Runnable function) {
        cuda.call(function);
    }

    /** Waits without telling of a failure; false if the time passed first. */
    boolean awaitIdle(Duration deadline) {
        try {
            return Waiting.until(cuda::query, deadline);
        } catch (MillraceException | IllegalStateException brokenOrClosed) {
            return true; // nothing will run there any more
        }
    }

    @Override
    public void close() {
        device.forget(this);
        cuda.close();
    }

    @Override
    public String toString() {
        return cuda.toString();
    }
}
