package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import org.millrace.ffi.cudart.cudart_h;

/**
 * Memory of a GPU.
 *
 * <p>
 * Its {@link #segment()} has the size and the address that NCCL, copies and kernels need, and can be sliced. Java code
 * that tries to read or write it gets a {@link WrongThreadException} (see {@link DeviceSegments}).
 */
public final class DeviceMemory implements AutoCloseable {

    private final CudaDevice device;
    private final MemorySegment segment;
    private final NativeHandle handle;

    /**
     * Creates an object for memory that other code allocated from the device.
     *
     * @param release frees the memory; called once
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

    /** Frees this memory when an arena is closed, or earlier if {@link #close()} is called. */
    @SuppressWarnings("restricted")
    public DeviceMemory attach(Arena arena) {
        MemorySegment.NULL.reinterpret(0, arena, ignored -> close());
        return this;
    }

    /** {@return the device on which it lies} */
    public CudaDevice device() {
        return device;
    }

    /** Returns the whole memory. */
    public MemorySegment segment() {
        if (handle.isClosed()) {
            throw new IllegalStateException(handle + " cannot be used");
        }
        return segment;
    }

    /**
     * {@return a part of it, as a segment of device memory}
     *
     * @throws IndexOutOfBoundsException if the part does not lie inside
     */
    public MemorySegment slice(long offset, long bytes) {
        return segment().asSlice(offset, bytes);
    }

    /**
     * {@return its start address in the device's address space; with unified addressing, the address is the same for
     * the host and all devices}
     */
    public long address() {
        return segment.address();
    }

    /** {@return its length in bytes} */
    public long byteSize() {
        return segment.byteSize();
    }

    /** Frees the memory. CUDA first waits for the device's work. May be called twice. */
    @Override
    public void close() {
        handle.close();
    }
}
