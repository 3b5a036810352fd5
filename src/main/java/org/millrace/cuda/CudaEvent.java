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
 * A mark in a stream. The program can ask whether the stream has reached the mark. Other streams can wait for the mark,
 * and the time between two marks can be measured. Recording and querying allocate nothing.
 */
public final class CudaEvent implements Event {

    private final CudaRuntime runtime;
    private final NativeHandle handle;

    private CudaEvent(CudaRuntime runtime, MemorySegment address) {
        this.runtime = runtime;
        this.handle = new NativeHandle("CUDA event", address,
                event -> runtime.checkRelease(CudaFunction.EVENT_DESTROY, cudart_h.cudaEventDestroy(event)));
    }

    /**
     * {@return a new event that records the time when a stream reaches it; the event is not recorded in a stream yet}
     */
    public static CudaEvent timing(CudaDevice device) {
        return create(device, cudart_h.cudaEventDefault());
    }

    /**
     * {@return a new event without a time; the event is not recorded in a stream yet} An event without a time costs the
     * device less than an event with a time.
     */
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

    /** {@return the event's {@code cudaEvent_t}, in a handle that each native call must enter and exit} */
    NativeHandle handle() {
        return handle;
    }

    /** Places this event's mark after the current work of a stream. Another call moves the mark. */
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
        Waiting.requireNotNegative("synchronize", deadline);
        if (!Waiting.until(this::query, deadline)) {
            throw new MillraceException(handle + " was not reached within " + deadline.toMillis()
                    + " ms: work enqueued before it is not complete");
        }
    }

    /**
     * {@return the time from an earlier mark to this mark, in milliseconds} The resolution is about half a microsecond.
     * Streams must have reached both marks. Both events must be {@linkplain #timing timing} events.
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

    /**
     * Returns the event as a CUDA event. Throws an {@link IllegalArgumentException} if the event belongs to another
     * kind of device.
     */
    static CudaEvent of(Event event) {
        if (event instanceof CudaEvent cuda) {
            return cuda;
        }
        throw new IllegalArgumentException(
                "event " + event + " does not belong to a GPU: make it with the device's newEvent()");
    }

    @Override
    public void close() {
        handle.close();
    }
}
