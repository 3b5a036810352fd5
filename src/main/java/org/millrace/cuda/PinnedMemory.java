package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.cudart.cudart_h;

/**
 * Page-locked host memory. The GPU's copies access it directly. If the memory is {@linkplain Flag#MAPPED mapped},
 * kernels can also read and write the memory in place.
 *
 * <p>
 * The memory is freed when the arena of its allocation is closed. Memory that a thread polls should belong to the
 * global arena, or to an arena that is closed after that thread has stopped. Closing a shared arena stops all threads
 * for a moment.
 *
 * @param host   the memory for Java code
 * @param device segment of this memory at its address for the GPU, not accessible from Java; null if the memory is not
 *               mapped
 */
public record PinnedMemory(MemorySegment host, @Nullable MemorySegment device) {

    /** Options for pinning host memory. */
    public enum Flag {
        /** Page-locked for all devices, not only for the current device. */
        PORTABLE(cudart_h.cudaHostAllocPortable()),
        /** Mapped into the device's address space, so that kernels can access it. */
        MAPPED(cudart_h.cudaHostAllocMapped()),
        /**
         * Write-combined: not cached by the CPU. The device reads such memory faster, but the CPU reads it very slowly.
         * The device sees the writes of the CPU in their order only if a full fence lies between them.
         */
        WRITE_COMBINED(cudart_h.cudaHostAllocWriteCombined());

        private final int bit;

        Flag(int bit) {
            this.bit = bit;
        }
    }

    /**
     * {@return new pinned memory, filled with zeros and aligned to a page}
     *
     * @param bytes number of bytes; more than 0
     * @param arena lifetime of the memory
     * @throws CudaException if the host has not enough memory (error 2)
     */
    @SuppressWarnings("restricted")
    public static PinnedMemory allocate(CudaDevice device, long bytes, Arena arena, Flag... flags) {
        if (bytes <= 0) {
            throw new IllegalArgumentException("pinned memory of " + bytes + " bytes: the size must be positive");
        }
        CudaRuntime runtime = device.runtime();
        int bits = 0;
        for (Flag flag : flags) {
            bits |= flag.bit;
        }
        int mode = bits;
        try (CurrentDevice _ = device.makeCurrent()) {
            MemorySegment address =
                    runtime.addressOf(CudaFunction.HOST_ALLOC, out -> cudart_h.cudaHostAlloc(out, bytes, mode));
            MemorySegment host;
            try {
                host = address.reinterpret(bytes, arena,
                        start -> runtime.checkRelease(CudaFunction.FREE_HOST, cudart_h.cudaFreeHost(start)));
            } catch (RuntimeException closedArena) {
                runtime.checkRelease(CudaFunction.FREE_HOST, cudart_h.cudaFreeHost(address));
                throw closedArena;
            }
            host.fill((byte) 0);
            boolean mapped = (mode & Flag.MAPPED.bit) != 0;
            return new PinnedMemory(host, mapped ? devicePointer(runtime, address, bytes) : null);
        }
    }

    static MemorySegment devicePointer(CudaRuntime runtime, MemorySegment host, long bytes) {
        MemorySegment seen = runtime.addressOf(CudaFunction.HOST_GET_DEVICE_POINTER,
                out -> cudart_h.cudaHostGetDevicePointer(out, host, 0));
        return DeviceSegments.of(seen.address(), bytes);
    }
}
