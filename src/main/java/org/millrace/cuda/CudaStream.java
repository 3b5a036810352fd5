package org.millrace.cuda;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.MillraceException;
import org.millrace.agent.Waiting;
import org.millrace.ffi.cudart.cudart_h;
import org.millrace.operation.Completions;

/**
 * A queue of work for a GPU. The kernels, copies, events and function calls of a stream run one after another. Any
 * thread may enqueue work. Work that two threads enqueue without synchronization has no defined order.
 */
public final class CudaStream implements DeviceStream {

    private static final Duration CLOSE_DEADLINE = Duration.ofSeconds(30);

    private final CudaDevice device;
    private final CudaRuntime runtime;
    private final NativeHandle handle;
    private final boolean ours;

    private CudaStream(CudaDevice device, NativeHandle handle, boolean ours) {
        this.device = device;
        this.ours = ours;
        this.runtime = device.runtime();
        this.handle = handle;
    }

    static CudaStream create(CudaDevice device) {
        try (CurrentDevice _ = device.makeCurrent()) {
            return own(device,
                    device.runtime()
                            .addressOf(CudaFunction.STREAM_CREATE_WITH_FLAGS,
                                    out -> cudart_h.cudaStreamCreateWithFlags(out, cudart_h.cudaStreamNonBlocking())));
        }
    }

    static CudaStream create(CudaDevice device, int priority) {
        try (CurrentDevice _ = device.makeCurrent()) {
            return own(device,
                    device.runtime()
                            .addressOf(CudaFunction.STREAM_CREATE_WITH_PRIORITY, out -> cudart_h
                                    .cudaStreamCreateWithPriority(out, cudart_h.cudaStreamNonBlocking(), priority)));
        }
    }

    private static CudaStream own(CudaDevice device, MemorySegment address) {
        CudaRuntime runtime = device.runtime();
        return new CudaStream(device, new NativeHandle("CUDA stream", address,
                stream -> runtime.checkRelease(CudaFunction.STREAM_DESTROY, cudart_h.cudaStreamDestroy(stream))), true);
    }

    /**
     * {@return an object for a stream that other code created and will destroy; closing the object does not destroy the
     * stream}
     *
     * @param address the stream's {@code cudaStream_t}; {@link MemorySegment#NULL} for the device's default stream
     */
    public static CudaStream of(CudaDevice device, MemorySegment address) {
        return new CudaStream(device, new NativeHandle("CUDA stream", address, notOurs -> {}), false);
    }

    /** {@return the device that runs the stream's work} */
    public CudaDevice device() {
        return device;
    }

    /**
     * {@return the handle of the stream's {@code cudaStream_t}} Every native call that uses the stream must enter and
     * exit the handle. This rule also applies to calls of other libraries.
     */
    public NativeHandle handle() {
        return handle;
    }

    @Override
    public boolean query() {
        return runtime.isComplete(handle, CudaFunction.STREAM_QUERY, cudart_h::cudaStreamQuery);
    }

    @Override
    public void synchronize(Duration deadline) {
        Waiting.requireNotNegative("synchronize", deadline);
        if (!Waiting.until(this::query, deadline)) {
            throw new MillraceException(
                    "the work of " + handle + " on " + device + " had not completed after " + deadline.toMillis()
                            + " ms. If a collective is among it, see whether every rank has enqueued it, and abort the"
                            + " communicator to end it");
        }
    }

    @Override
    public CompletionStage<Void> completion() {
        CudaEvent mark = CudaEvent.marker(device);
        record(mark);
        return Completions.of(mark::query).whenComplete((_, _) -> mark.close());
    }

    @Override
    public void record(Event event) {
        CudaEvent.of(event).record(this);
    }

    @Override
    public void call(Runnable function) {
        call(HostFunction.once(function));
    }

    @Override
    public void waitFor(Event event) {
        MemorySegment stream = handle.enter();
        try {
            MemorySegment awaited = CudaEvent.of(event).handle().enter();
            try {
                runtime.check(CudaFunction.STREAM_WAIT_EVENT,
                        cudart_h.cudaStreamWaitEvent(stream, awaited, cudart_h.cudaEventWaitDefault()));
            } finally {
                CudaEvent.of(event).handle().exit();
            }
        } finally {
            handle.exit();
        }
    }

    /**
     * Enqueues a copy between host and device or between devices.
     *
     * @param target memory to copy to; native, and valid until the copy is complete
     * @param source memory to copy from, of the same size; valid and unchanged until the copy is complete
     * @throws IllegalArgumentException if the sizes differ or one of the segments lies in the Java heap
     */
    public void copy(MemorySegment target, MemorySegment source) {
        long bytes = CudaRuntime.copiedBytes(target, source);
        MemorySegment to = DeviceSegments.pointer("copy target", target, bytes);
        MemorySegment from = DeviceSegments.pointer("copy source", source, bytes);
        runtime.check(CudaFunction.MEMCPY_ASYNC,
                handle.call(stream -> cudart_h.cudaMemcpyAsync(to, from, bytes, cudart_h.cudaMemcpyDefault(), stream)));
    }

    /** Enqueues work that sets every byte of a segment of device memory to a value. */
    public void fill(MemorySegment target, byte value) {
        MemorySegment to = DeviceSegments.pointer("fill target", target, 0);
        runtime.check(CudaFunction.MEMSET_ASYNC, handle
                .call(stream -> cudart_h.cudaMemsetAsync(to, Byte.toUnsignedInt(value), target.byteSize(), stream)));
    }

    /**
     * Enqueues a call of a Java function. CUDA calls it on one of CUDA's own threads.
     *
     * @param function function to call; it must not call CUDA. Later work of the stream waits until the function
     *                 returns.
     */
    public void call(HostFunction function) {
        runtime.check(CudaFunction.LAUNCH_HOST_FUNC,
                handle.call(stream -> cudart_h.cudaLaunchHostFunc(stream, HostFunction.STUB, function.token())));
    }

    /**
     * Begins a capture: work that is enqueued from now on is recorded and does not run. Until the capture ends, CUDA
     * refuses calls of this thread that could invalidate the capture. Calls of other threads are not restricted.
     *
     * @throws CudaException if the stream cannot be captured
     */
    public void beginGraph() {
        runtime.check(CudaFunction.STREAM_BEGIN_CAPTURE, handle
                .call(stream -> cudart_h.cudaStreamBeginCapture(stream, cudart_h.cudaStreamCaptureModeThreadLocal())));
    }

    /**
     * Ends the capture and returns the recorded work.
     *
     * @throws CudaException if a call during the capture made it invalid
     */
    public CudaGraph endGraph() {
        MemorySegment stream = handle.enter();
        try {
            return new CudaGraph(runtime, runtime.addressOf(CudaFunction.STREAM_END_CAPTURE,
                    out -> cudart_h.cudaStreamEndCapture(stream, out)));
        } finally {
            handle.exit();
        }
    }

    /** {@return whether a capture that {@link #beginGraph()} began is in progress and still valid} */
    @Override
    public boolean isCapturing() {
        MemorySegment stream = handle.enter();
        try {
            return runtime.intOf(CudaFunction.STREAM_IS_CAPTURING,
                    out -> cudart_h.cudaStreamIsCapturing(stream, out)) == cudart_h.cudaStreamCaptureStatusActive();
        } finally {
            handle.exit();
        }
    }

    /**
     * Waits at most 30 s for the enqueued work, and destroys the stream. CUDA completes work that remains after this
     * time. Does nothing if other code created the stream. May be called twice.
     */
    @Override
    public void close() {
        if (ours && !handle.isClosed()) {
            try {
                Waiting.until(this::query, CLOSE_DEADLINE);
            } catch (MillraceException | IllegalStateException failedOrClosedMeanwhile) {
                // The failure belongs to earlier work. Threads that wait for this work receive the failure. The stream
                // is destroyed in any case.
            }
        }
        handle.close();
    }

    @Override
    public String toString() {
        return handle + " of " + device;
    }
}
