package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.cudart.cudart_h;

/**
 * A module of kernels, loaded from an image in memory. The image is PTX text, which the driver compiles for the GPU, or
 * a compiled cubin or fatbin. Requires CUDA 12.8.
 */
public final class CudaModule implements AutoCloseable {

    private static final int LOG_BYTES = 16 * 1024;

    private final CudaRuntime runtime;
    private final NativeHandle handle;

    private CudaModule(CudaRuntime runtime, MemorySegment address) {
        this.runtime = runtime;
        this.handle = new NativeHandle("CUDA module", address,
                module -> runtime.checkRelease(CudaFunction.LIBRARY_UNLOAD, cudart_h.cudaLibraryUnload(module)));
    }

    /**
     * Loads an image for all devices.
     *
     * @throws CudaException if CUDA refuses the image; the message contains the compiler's log
     */
    public static CudaModule load(CudaRuntime runtime, byte[] image) {
        runtime.require(CudaFunction.LIBRARY_LOAD_DATA);
        try (Arena arena = Arena.ofConfined()) {
            // PTX text must end with a zero byte, so one more byte is allocated. A compiled image contains its own
            // length, so CUDA ignores this byte.
            MemorySegment code = arena.allocate(image.length + 1L, Long.BYTES);
            MemorySegment.copy(image, 0, code, ValueLayout.JAVA_BYTE, 0, image.length);
            MemorySegment log = arena.allocate(LOG_BYTES);
            MemorySegment options = arena.allocateFrom(ValueLayout.JAVA_INT, cudart_h.cudaJitErrorLogBuffer(),
                    cudart_h.cudaJitErrorLogBufferSizeBytes());
            MemorySegment values = arena.allocate(ValueLayout.ADDRESS, 2);
            values.setAtIndex(ValueLayout.ADDRESS, 0, log);
            values.setAtIndex(ValueLayout.ADDRESS, 1, MemorySegment.ofAddress(LOG_BYTES));
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            int result = cudart_h.cudaLibraryLoadData(out, code, options, values, 2, MemorySegment.NULL,
                    MemorySegment.NULL, 0);
            if (result != cudart_h.cudaSuccess()) {
                throw runtime.failure(CudaFunction.LIBRARY_LOAD_DATA, result, log.getString(0));
            }
            return new CudaModule(runtime, out.get(ValueLayout.ADDRESS, 0));
        }
    }

    /**
     * {@return the kernel with the given name; it must not be used after the module was closed}
     *
     * @param name the kernel's name in the image: the mangled C++ name, or the plain name for C linkage
     * @throws CudaException if the image has no such kernel (error 500)
     */
    public CudaKernel kernel(String name) {
        MemorySegment module = handle.enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocateFrom(name);
            MemorySegment address = runtime.addressOf(CudaFunction.LIBRARY_GET_KERNEL,
                    out -> cudart_h.cudaLibraryGetKernel(out, module, text));
            return new CudaKernel(runtime, handle, name, address);
        } finally {
            handle.exit();
        }
    }

    /** Unloads the image. All launches of its kernels must have completed. May be called twice. */
    @Override
    public void close() {
        handle.close();
    }
}
