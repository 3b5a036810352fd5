package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import org.millrace.ffi.cudart.cudart_h;

/**
 * Memory of a GPU.
 *
 * <p>
 * The {@link #segment()} of this memory can be sliced. It has the address and the size that NCCL, copies and kernels
 * need. If Java code tries to read or write it, a {@link WrongThreadException} is thrown (see {@link DeviceSegments}).
 */
public final class DeviceMemory implements AutoCloseable {

    private final CudaDevice device;
    private final MemorySegment segment;
    private final NativeHandle handle;

    /**
     * Creates an object for device memory that other code allocated.
     *
     * @param release function that frees the memory; called once
     */
    public DeviceMemory(CudaDevice device, MemorySegment address, long bytes, Consumer<MemorySegment> release) {
        this.device = device;
        this.segment = DeviceSegments.of(address.address(), bytes);
        this.handle = new NativeHandle(device + " memory", address, release);
    }

    static DeviceMemory allocate(CudaDevice device, long bytes) {
        if (bytes < 0) {
            throw new IllegalArgumentException("device memory of " + bytes + " bytes: the size must not be negative");
        }
        CudaRuntime runtime = device.runtime();
        try (CurrentDevice _ = device.makeCurrent()) {
            MemorySegment address = runtime.addressOf(CudaFunction.MALLOC, out -> cudart_h.cudaMalloc(out, bytes));
            return new DeviceMemory(device, address, bytes,
                    start -> runtime.checkRelease(CudaFunction.FREE, cudart_h.cudaFree(start)));
        }
    }

    /** Frees this memory when an arena is closed. {@link #close()} may free it earlier. */
    @SuppressWarnings("restricted")
    public DeviceMemory attach(Arena arena) {
        MemorySegment.NULL.reinterpret(0, arena, ignored -> close());
        return this;
    }

    /** {@return the device that has this memory} */
    public CudaDevice device() {
        return device;
    }

    /** Returns the whole memory as one segment of device memory. */
    public MemorySegment segment() {
        if (handle.isClosed()) {
            throw new IllegalStateException(handle + " cannot be used");
        }
        return segment;
    }

    /**
     * {@return a part of this memory, as a segment of device memory}
     *
     * @throws IndexOutOfBoundsException if the part does not lie inside this memory
     */
    public MemorySegment slice(long offset, long bytes) {
        return segment().asSlice(offset, bytes);
    }

    /**
     * {@return the start address of this memory in the device's address space; with unified addressing, the host and
     * all devices use the same address}
     */
    public long address() {
        return segment.address();
    }

    /** {@return the size of this memory in bytes} */
    public long byteSize() {
        return segment.byteSize();
    }

    /** Frees the memory. CUDA first waits for the work of the device. May be called twice. */
    @Override
    public void close() {
        handle.close();
    }
}
