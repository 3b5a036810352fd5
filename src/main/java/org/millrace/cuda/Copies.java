package org.millrace.cuda;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.cudart.cudart_h;

/**
 * Copies and fills that are complete, or at least no longer need the host's memory, when the call returns; and what all
 * copies have in common.
 */
public final class Copies {

    private Copies() {}

    /**
     * Copies between host and device or between devices, and waits for it.
     *
     * @param runtime the runtime
     * @param target  where to; native memory
     * @param source  where from; of the same size
     * @throws IllegalArgumentException if the sizes differ or one of them lies in the Java heap
     */
    public static void copy(CudaRuntime runtime, MemorySegment target, MemorySegment source) {
        long bytes = bytes(target, source);
        MemorySegment to = DeviceSegments.pointer("copy target", target, bytes);
        MemorySegment from = DeviceSegments.pointer("copy source", source, bytes);
        runtime.check(CudaFunction.MEMCPY, cudart_h.cudaMemcpy(to, from, bytes, cudart_h.cudaMemcpyDefault()));
    }

    /**
     * Sets every byte of some device memory.
     *
     * @param runtime the runtime
     * @param target  device memory
     * @param value   what each byte becomes
     */
    public static void fill(CudaRuntime runtime, MemorySegment target, byte value) {
        MemorySegment to = DeviceSegments.pointer("fill target", target, 0);
        runtime.check(CudaFunction.MEMSET, cudart_h.cudaMemset(to, Byte.toUnsignedInt(value), target.byteSize()));
    }

    static long bytes(MemorySegment target, MemorySegment source) {
        if (target.byteSize() != source.byteSize()) {
            throw new IllegalArgumentException("a copy of " + source.byteSize() + " bytes into " + target.byteSize()
                    + ": the sizes must be equal (slice the larger)");
        }
        return source.byteSize();
    }
}
