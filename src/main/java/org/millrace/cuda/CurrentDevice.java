package org.millrace.cuda;

import org.millrace.ffi.cudart.cudart_h;

/**
 * Selection of a device as the calling thread's current device. It lasts from the constructor to {@link #close}, on the
 * same thread. Closing makes the previous device current again.
 */
public final class CurrentDevice implements AutoCloseable {

    private final CudaRuntime runtime;
    private final Thread owner = Thread.currentThread();
    private final int previous;
    private final boolean changed;
    private boolean closed;

    CurrentDevice(CudaRuntime runtime, int index) {
        if (owner.isVirtual()) {
            throw new IllegalStateException(
                    "CUDA's current device belongs to an operating system thread, and a virtual thread may change"
                            + " that: call from a platform thread");
        }
        this.runtime = runtime;
        this.previous = runtime.intOf(CudaFunction.GET_DEVICE, cudart_h::cudaGetDevice);
        this.changed = previous != index;
        if (changed) {
            runtime.check(CudaFunction.SET_DEVICE, cudart_h.cudaSetDevice(index));
        }
    }

    @Override
    public void close() {
        if (Thread.currentThread() != owner) {
            throw new IllegalStateException("the current device of thread " + owner.getName()
                    + " cannot be restored from " + Thread.currentThread().getName());
        }
        if (changed && !closed) {
            closed = true;
            runtime.check(CudaFunction.SET_DEVICE, cudart_h.cudaSetDevice(previous));
        }
    }
}
