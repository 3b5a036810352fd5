package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.ffi.cudart.cudaPointerAttributes;
import org.millrace.ffi.cudart.cudart_h;

/**
 * What CUDA knows of an address.
 *
 * @param device   the device that it belongs to, or through which it was pinned; −2 if CUDA does not know the memory
 * @param onDevice its address for that device; 0 if the device cannot reach it
 * @param onHost   its address for the host; 0 if the host cannot reach it
 */
public record PointerAttributes(Kind kind, int device, long onDevice, long onHost) {

    /** Whose memory an address is; in the order of {@code cudaMemoryType}. */
    public enum Kind {
        /** Ordinary host memory, unknown to CUDA. */
        UNREGISTERED,
        /** Pinned host memory. */
        HOST,
        /** Memory of a device. */
        DEVICE,
        /** Memory that CUDA moves between host and device. */
        MANAGED
    }

    /** {@return what CUDA knows of an address} */
    public static PointerAttributes of(CudaRuntime runtime, MemorySegment memory) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = cudaPointerAttributes.allocate(arena);
            runtime.check(CudaFunction.POINTER_GET_ATTRIBUTES,
                    cudart_h.cudaPointerGetAttributes(out, DeviceSegments.pointer("memory", memory, 0)));
            return new PointerAttributes(Kind.values()[cudaPointerAttributes.type(out)],
                    cudaPointerAttributes.device(out), cudaPointerAttributes.devicePointer(out).address(),
                    cudaPointerAttributes.hostPointer(out).address());
        }
    }
}
