package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.config.Settings;
import org.millrace.ffi.cudart.cudaPointerAttributes;
import org.millrace.ffi.cudart.cudart_h;
import org.millrace.library.LibraryDirectories;
import org.millrace.library.NativeLibrary;

/** The loaded CUDA runtime library, which provides devices and pinned memory. A program needs only one such object. */
public final class CudaRuntime {

    private static final Logger LOG = LogManager.getLogger(CudaRuntime.class);

    private final NativeLibrary library;

    private CudaRuntime(NativeLibrary library) {
        this.library = library;
    }

    /**
     * Loads the runtime from the location in the settings, or by the search that {@link #load(String)} describes.
     *
     * @return the runtime; a driver or a GPU need not be present
     * @throws MillraceException if no usable libcudart was found
     */
    public static CudaRuntime load() {
        return load(null);
    }

    /**
     * Loads the runtime.
     *
     * @param path a file, its folder, or a name for the dynamic loader. If it is null or empty, the first available
     *             source in this order determines the library: the libcudart that Millrace already uses in this
     *             process; the system property {@code millrace.cudart.library}; the environment variable
     *             {@code MILLRACE_CUDART_LIBRARY}; or the usual names and directories.
     * @return the runtime; a driver or a GPU need not be present
     * @throws MillraceException if no usable libcudart was found
     */
    public static CudaRuntime load(@Nullable String path) {
        NativeLibrary.Search search = new NativeLibrary.Search("CUDA runtime", Settings.CUDART_LIBRARY,
                List.of("libcudart.so.13", "libcudart.so.12", "libcudart.so"),
                LibraryDirectories.list(Path.of("/"), System::getenv,
                        List.of("nvidia/cu13/lib", "nvidia/cuda_runtime/lib")),
                CudaFunction.ALL, "Install it (pip install nvidia-cuda-runtime, or the CUDA toolkit)");
        return new CudaRuntime(NativeLibrary.load(search, path));
    }

    /** {@return the loaded libcudart} */
    public NativeLibrary library() {
        return library;
    }

    /** {@return the runtime's version in CUDA's encoding: 1000 × major + 10 × minor, for instance 13000 for 13.0} */
    public int version() {
        return intOf(CudaFunction.RUNTIME_GET_VERSION, cudart_h::cudaRuntimeGetVersion);
    }

    /** {@return the newest CUDA release that the driver supports: 1000 × major + 10 × minor; 0 without a driver} */
    public int driverVersion() {
        return intOf(CudaFunction.DRIVER_GET_VERSION, cudart_h::cudaDriverGetVersion);
    }

    /** {@return a version in CUDA's encoding as text, for instance {@code "13.0"}} */
    public static String versionText(int version) {
        return version / 1000 + "." + version % 1000 / 10;
    }

    /**
     * Returns the number of GPUs that this process sees.
     *
     * @throws CudaException if the machine has no driver (error 35) or no GPU (error 100)
     */
    public int deviceCount() {
        return intOf(CudaFunction.GET_DEVICE_COUNT, cudart_h::cudaGetDeviceCount);
    }

    /**
     * {@return the GPU with the given number}
     *
     * @throws IllegalArgumentException if no GPU has this number
     */
    public CudaDevice device(int index) {
        int count = deviceCount();
        if (index < 0 || index >= count) {
            throw new IllegalArgumentException(
                    "there is no CUDA device " + index + ": this process sees " + count + ", numbered from 0");
        }
        return new CudaDevice(this, index);
    }

    /** Returns the number of the calling thread's current GPU. */
    public int currentDevice() {
        return intOf(CudaFunction.GET_DEVICE, cudart_h::cudaGetDevice);
    }

    /** Returns all GPUs that this process sees. */
    public List<CudaDevice> devices() {
        return IntStream.range(0, deviceCount()).mapToObj(index -> new CudaDevice(this, index)).toList();
    }

    /**
     * {@return the GPU at a PCI address}
     *
     * @param pciBusId {@code domain:bus:device.function}, as {@link CudaDevice#pciBusId()} returns it
     * @throws CudaException if this process sees no GPU at this address
     */
    public CudaDevice deviceByPciBusId(String pciBusId) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment id = arena.allocateFrom(pciBusId);
            return new CudaDevice(this,
                    intOf(CudaFunction.DEVICE_GET_BY_PCI_BUS_ID, out -> cudart_h.cudaDeviceGetByPCIBusId(out, id)));
        }
    }

    /**
     * Copies between host and device or between devices. When the method returns, a copy to the host is complete. Any
     * other copy may still run, but the host memory may be reused.
     *
     * @param target memory to copy to; native
     * @param source memory to copy from; native, of the same size
     * @throws IllegalArgumentException if the sizes differ or one of the segments lies in the Java heap
     */
    public void copy(MemorySegment target, MemorySegment source) {
        long bytes = copiedBytes(target, source);
        MemorySegment to = DeviceSegments.pointer("copy target", target, bytes);
        MemorySegment from = DeviceSegments.pointer("copy source", source, bytes);
        check(CudaFunction.MEMCPY, cudart_h.cudaMemcpy(to, from, bytes, cudart_h.cudaMemcpyDefault()));
    }

    static long copiedBytes(MemorySegment target, MemorySegment source) {
        if (target.byteSize() != source.byteSize()) {
            throw new IllegalArgumentException("a copy of " + source.byteSize() + " bytes into " + target.byteSize()
                    + ": the sizes must be equal (slice the larger)");
        }
        if (target.isReadOnly()) {
            throw new IllegalArgumentException("copy: the destination is read-only");
        }
        return source.byteSize();
    }

    /** Sets every byte of a segment of device memory to a value. */
    public void fill(MemorySegment target, byte value) {
        MemorySegment to = DeviceSegments.pointer("fill target", target, 0);
        check(CudaFunction.MEMSET, cudart_h.cudaMemset(to, Byte.toUnsignedInt(value), target.byteSize()));
    }

    void check(CudaFunction function, int code) {
        if (code != cudart_h.cudaSuccess()) {
            throw failure(function, code, "");
        }
    }

    /**
     * Logs a warning if a function that releases a resource returned an error. An exception would not help, because the
     * caller has no other way to release the resource.
     */
    void checkRelease(CudaFunction function, int code) {
        if (code != cudart_h.cudaSuccess() && code != cudart_h.cudaErrorCudartUnloading()) {
            LOG.warn("{}", failure(function, code, "The resource stays allocated.").getMessage());
        }
    }

    CudaException failure(CudaFunction function, int code, String detail) {
        forgetLastError();
        String name = NativeLibrary.text(cudart_h.cudaGetErrorName(code));
        String description = NativeLibrary.text(cudart_h.cudaGetErrorString(code));
        return new CudaException(function.symbol(), code, name, description, detail);
    }

    /**
     * Clears the calling thread's last error, which CUDA stores. Without this call, other code that checks for a last
     * error would report this error.
     */
    void forgetLastError() {
        cudart_h.cudaGetLastError();
    }

    /**
     * Returns whether all work of a stream, or all work before an event, is complete. Allocates nothing.
     *
     * @param query {@code cudaStreamQuery} or {@code cudaEventQuery}
     */
    boolean isComplete(NativeHandle handle, CudaFunction function, ToIntFunction<MemorySegment> query) {
        MemorySegment asked = handle.enter();
        try {
            int code = query.applyAsInt(asked);
            if (code == cudart_h.cudaErrorNotReady()) {
                forgetLastError();
                return false;
            }
            check(function, code);
            return true;
        } finally {
            handle.exit();
        }
    }

    /** Throws an exception if the loaded runtime is too old to contain a function. */
    void require(CudaFunction function) {
        if (!library.has(function)) {
            throw library.lacks(function, versionText(version()));
        }
    }

    /** Calls a function that writes an int, and returns the int. Throws if the function fails. */
    int intOf(CudaFunction function, ToIntFunction<MemorySegment> call) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
            check(function, call.applyAsInt(out));
            return out.get(ValueLayout.JAVA_INT, 0);
        }
    }

    /** Calls a function that writes a pointer, and returns the pointer. Throws if the function fails. */
    MemorySegment addressOf(CudaFunction function, ToIntFunction<MemorySegment> call) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            check(function, call.applyAsInt(out));
            return out.get(ValueLayout.ADDRESS, 0);
        }
    }

    /**
     * CUDA's information about an address.
     *
     * @param device   device that owns the memory, or device through which the memory was pinned; −2 if CUDA does not
     *                 know the memory
     * @param onDevice address of the memory for that device; 0 if the device cannot access it
     * @param onHost   address of the memory for the host; 0 if the host cannot access it
     */
    public record PointerAttributes(Kind kind, int device, long onDevice, long onHost) {

        /** Kind of memory, in the order of {@code cudaMemoryType}. */
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

        /** {@return CUDA's information about an address} */
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
}
