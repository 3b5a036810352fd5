package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.millrace.Event;
import org.millrace.MillraceException;
import org.millrace.agent.Waiting;
import org.millrace.ffi.cudart.cudart_h;

/**
 * A mark in a stream. The program can query it, other streams can wait for it, and it can be timed. Recording and
 * querying allocate nothing.
 */
public final class CudaEvent implements Event {

    private final CudaRuntime runtime;
    private final NativeHandle handle;

    private CudaEvent(CudaRuntime runtime, MemorySegment address) {
        this.runtime = runtime;
        this.handle = new NativeHandle("CUDA event", address,
                event -> runtime.checkRelease(CudaFunction.EVENT_DESTROY, cudart_h.cudaEventDestroy(event)));
    }

    /** {@return a new event, not yet recorded, that stores the time when it is reached} */
    public static CudaEvent timing(CudaDevice device) {
        return create(device, cudart_h.cudaEventDefault());
    }

    /** {@return a new event, not yet recorded, without a time, which costs the device less} */
    public static CudaEvent marker(CudaDevice device) {
        return create(device, cudart_h.cudaEventDisableTiming());
    }

    private static CudaEvent create(CudaDevice device, int flags) {
        CudaRuntime runtime = device.runtime();
        try (CurrentDevice _ = device.makeCurrent()) {
            return new CudaEvent(runtime, runtime.addressOf(CudaFunction.EVENT_CREATE_WITH_FLAGS,
                    out -> cudart_h.cudaEventCreateWithFlags(out, flags)));
        }
    }

    /** {@return its {@code cudaEvent_t}, as a handle that a call enters and leaves} */
    NativeHandle handle() {
        return handle;
    }

    /** Puts the mark after the current work of a stream. Recording again moves it. */
    public void record(CudaStream stream) {
        MemorySegment event = handle.enter();
        try {
            MemorySegment queue = stream.handle().enter();
            try {
                runtime.check(CudaFunction.EVENT_RECORD, cudart_h.cudaEventRecord(event, queue));
            } finally {
                stream.handle().exit();
            }
        } finally {
            handle.exit();
        }
    }

    @Override
    public boolean query() {
        return runtime.isComplete(handle, CudaFunction.EVENT_QUERY, cudart_h::cudaEventQuery);
    }

    @Override
    public void synchronize(Duration deadline) {
        if (!Waiting.until(this::query, deadline)) {
            throw new MillraceException(handle + " was not reached within " + deadline.toMillis()
                    + " ms: work enqueued before it is still under way");
        }
    }

    /**
     * {@return the time between two {@linkplain #timing timing} marks that are both reached, in milliseconds with a
     * resolution of about half a microsecond}
     */
    public float millisSince(CudaEvent earlier) {
        MemorySegment end = handle.enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment start = earlier.handle.enter();
            try {
                MemorySegment millis = arena.allocate(ValueLayout.JAVA_FLOAT);
                runtime.check(CudaFunction.EVENT_ELAPSED_TIME, cudart_h.cudaEventElapsedTime(millis, start, end));
                return millis.get(ValueLayout.JAVA_FLOAT, 0);
            } finally {
                earlier.handle.exit();
            }
        } finally {
            handle.exit();
        }
    }

    @Override
    public Duration elapsedSince(Event earlier) {
        return Duration.ofNanos(Math.round(millisSince(of(earlier)) * 1e6));
    }

    /** Returns the event if it is a CUDA event; otherwise throws. */
    static CudaEvent of(Event event) {
        if (event instanceof CudaEvent cuda) {
            return cuda;
        }
        throw new IllegalArgumentException(
                "event " + event + " is none of a GPU's: make it with the device's newEvent()");
    }

    @Override
    public void close() {
        handle.close();
    }
}
