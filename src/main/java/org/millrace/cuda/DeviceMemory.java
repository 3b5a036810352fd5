package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import org.millrace.ffi.cudart.cudart_h;

/**
 * Memory of a GPU.
 *
 * <p>
 * Its {@link #segment()} has the size and the address that NCCL, copies and kernels need, and can be sliced, but Java
 * code that tries to read or write it gets a {@link WrongThreadException} (see {@link DeviceSegments}).
 */
public final class DeviceMemory implements AutoCloseable {

    private final CudaDevice device;
    private final MemorySegment segment;
    private final NativeHandle handle;

    /**
     * Memory that someone took from the device.
     *
     * @param release gives it back; called once
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

    /** {@return the device it lies on} */
    public CudaDevice device() {
        return device;
    }

    /** The whole of it. */
    public MemorySegment segment() {
        if (handle.isClosed()) {
            throw new IllegalStateException(handle + " cannot be used");
        }
        return segment;
    }

    /**
     * {@return a part of it, a segment of device memory}
     *
     * @throws IndexOutOfBoundsException if it does not lie inside
     */
    public MemorySegment slice(long offset, long bytes) {
        return segment().asSlice(offset, bytes);
    }

    /**
     * {@return where it begins: an address in the device's, and with unified addressing in everyone's, address space}
     */
    public long address() {
        return segment.address();
    }

    /** {@return how long it is, in bytes} */
    public long byteSize() {
        return segment.byteSize();
    }

    /** Gives it back. CUDA waits for the device's work first. Closing twice is allowed. */
    @Override
    public void close() {
        handle.close();
    }
}
