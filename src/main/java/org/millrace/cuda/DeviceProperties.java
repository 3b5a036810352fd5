package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What only {@code cudaGetDeviceProperties} tells without taking the device into use: its name and the size of its
 * memory.
 *
 * <p>
 * The structure grows with every release, but begins with {@code char name[256]}, {@code uuid[16]}, {@code luid[8]},
 * {@code unsigned luidDeviceNodeMask}, {@code size_t totalGlobalMem} in all of them (facts: driver_types.h of CUDA 10
 * to 13). So only this beginning is read, out of a buffer larger than any.
 *
 * @param name   for instance {@code "NVIDIA H200"}
 * @param memory bytes
 */
record DeviceProperties(String name, long memory) {

    private static final long BUFFER_BYTES = 16 * 1024;
    private static final long MEMORY_OFFSET = 288;
    private static final FunctionDescriptor TYPE =
            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT);

    static DeviceProperties of(CudaRuntime runtime, int device) {
        CudaFunction function = CudaFunction.GET_DEVICE_PROPERTIES;
        // A library keeps the old structure under the old name; where there is a newer one, the name ends in _v2.
        MemorySegment address = runtime.library()
                .find(function.symbol() + "_v2")
                .or(() -> runtime.library().find(function.symbol()))
                .orElseThrow();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment buffer = arena.allocate(BUFFER_BYTES, Long.BYTES);
            runtime.check(function, call(address, buffer, device));
            return new DeviceProperties(buffer.getString(0), buffer.get(ValueLayout.JAVA_LONG, MEMORY_OFFSET));
        }
    }

    @SuppressWarnings("restricted")
    private static int call(MemorySegment address, MemorySegment buffer, int device) {
        try {
            return (int) Linker.nativeLinker().downcallHandle(address, TYPE).invokeExact(buffer, device);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }
}
