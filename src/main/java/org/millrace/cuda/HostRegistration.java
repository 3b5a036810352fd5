package org.millrace.cuda;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.cudart.cudart_h;

/**
 * Host memory that CUDA did not allocate (from an arena or a mapped file), page-locked and mapped for the GPU until
 * this object is closed. This object must be closed before the memory is freed.
 */
public final class HostRegistration implements AutoCloseable {

    private final NativeHandle handle;
    private final MemorySegment device;

    private HostRegistration(NativeHandle handle, MemorySegment device) {
        this.handle = handle;
        this.device = device;
    }

    /**
     * Pins and maps host memory for all devices.
     *
     * @throws IllegalArgumentException if the memory lies in the Java heap or is closed
     * @throws CudaException            if the memory is already registered (error 712), or cannot be pinned
     */
    public static HostRegistration register(CudaDevice owner, MemorySegment memory) {
        CudaRuntime runtime = owner.runtime();
        MemorySegment address = DeviceSegments.pointer("memory to register", memory, 1);
        try (CurrentDevice _ = owner.makeCurrent()) {
            int flags = cudart_h.cudaHostRegisterPortable() | cudart_h.cudaHostRegisterMapped();
            runtime.check(CudaFunction.HOST_REGISTER, cudart_h.cudaHostRegister(address, memory.byteSize(), flags));
            NativeHandle handle = new NativeHandle("host registration", address,
                    start -> runtime.checkRelease(CudaFunction.HOST_UNREGISTER, cudart_h.cudaHostUnregister(start)));
            try {
                return new HostRegistration(handle, PinnedMemory.devicePointer(runtime, address, memory.byteSize()));
            } catch (CudaException unmapped) {
                handle.close();
                throw unmapped;
            }
        }
    }

    /**
     * Returns the memory as a segment that begins at its address in the GPU's address space.
     *
     * @return a segment that Java code cannot read or write
     */
    public MemorySegment device() {
        if (handle.isClosed()) {
            throw new IllegalStateException(handle + " cannot be used");
        }
        return device;
    }

    /** Unpins the memory. May be called twice. */
    @Override
    public void close() {
        handle.close();
    }
}
