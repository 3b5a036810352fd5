package org.millrace.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import org.millrace.MillraceException;
import org.millrace.cuda.CudaDevice;
import org.millrace.foreign.CFunction;
import org.millrace.library.DynamicLoader;
import org.millrace.library.NativeLibrary;

/**
 * Functions of CUDA's driver library ({@code libcuda}) that the CUDA runtime lacks, for example those that map memory
 * of another process. Handles and addresses are passed as plain numbers, so that a thread that copies continuously
 * allocates nothing.
 *
 * <p>
 * A device must be current on the calling thread: see {@link CudaDevice#makeCurrent()}. The signatures come from CUDA's
 * {@code cuda.h}. They have not changed since CUDA 11.1, or since the release that is noted at the function.
 */
public final class CudaDriver {

    private static final int DISABLE_TIMING = 2; // CU_EVENT_DISABLE_TIMING
    private static final int NOT_READY = 600; // CUDA_ERROR_NOT_READY
    private static final int RELAXED_CAPTURE = 2; // CU_STREAM_CAPTURE_MODE_RELAXED
    private static final int NON_BLOCKING = 1; // CU_STREAM_NON_BLOCKING
    private static final int PORTABLE = 3; // CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTALLOC_DEVICEMAP
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

    static final String NAME = "libcuda.so.1";
    private static final int MAX_ARGUMENTS = 5;

    /**
     * Functions of the driver that this class calls. The comment at each function lists its parameters. It also names
     * the first CUDA release with the function, if this release is later than 11.1.
     */
    enum Function {
        ERROR_NAME("cuGetErrorName"), // (error, name)
        COPY("cuMemcpyAsync"), // (target, source, bytes, stream)
        COPY_ROWS("cuMemcpy2DAsync_v2"), // (description, stream)
        STORE_LONG("cuStreamWriteValue64_v2"), // (stream, target, value, flags); since CUDA 11.7
        STORE_INT("cuStreamWriteValue32_v2"), // (stream, target, value, flags); since CUDA 11.7
        POINTER_ATTRIBUTE("cuPointerGetAttribute"), // (value, attribute, address)
        NEW_EVENT("cuEventCreate"), // (event, flags)
        RECORD_EVENT("cuEventRecord"), // (event, stream)
        QUERY_EVENT("cuEventQuery"), // (event)
        DESTROY_EVENT("cuEventDestroy_v2"), // (event)
        GET_CONTEXT("cuCtxGetCurrent"), // (context)
        SET_CONTEXT("cuCtxSetCurrent"), // (context)
        INITIALIZE("cuInit"), // (flags)
        DEVICE_COUNT("cuDeviceGetCount"), // (count)
        NEW_CONTEXT("cuCtxCreate_v2"), // (context, flags, device)
        POP_CONTEXT("cuCtxPopCurrent_v2"), // (context)
        DESTROY_CONTEXT("cuCtxDestroy_v2"), // (context)
        CAPTURE_MODE("cuThreadExchangeStreamCaptureMode"), // (mode): sets the mode, and stores the old mode there
        CURRENT_DEVICE("cuCtxGetDevice"), // (device)
        PRIORITIES("cuCtxGetStreamPriorityRange"), // (lowest, highest)
        NEW_STREAM("cuStreamCreateWithPriority"), // (stream, flags, priority)
        QUERY_STREAM("cuStreamQuery"), // (stream)
        DESTROY_STREAM("cuStreamDestroy_v2"), // (stream)
        ALLOCATE_PINNED("cuMemHostAlloc"), // (address, size, flags)
        FREE_PINNED("cuMemFreeHost"), // (address)
        GET_ADDRESS_RANGE("cuMemGetAddressRange_v2"), // (base, size, address)
        RANGE_HANDLE("cuMemGetHandleForAddressRange"), // (descriptor, address, size, type, flags); since CUDA 11.7
        RETAIN("cuMemRetainAllocationHandle"), // (handle, address)
        EXPORT("cuMemExportToShareableHandle"), // (descriptor, handle, type, flags)
        IMPORT("cuMemImportFromShareableHandle"), // (handle, descriptor, type)
        RESERVE("cuMemAddressReserve"), // (address, size, alignment, requested address, flags)
        MAP("cuMemMap"), // (address, size, offset, handle, flags)
        SET_ACCESS("cuMemSetAccess"), // (address, size, access, count)
        UNMAP("cuMemUnmap"), // (address, size)
        FREE("cuMemAddressFree"), // (address, size)
        RELEASE("cuMemRelease"); // (handle)

        private final String symbol;

        Function(String symbol) {
            this.symbol = symbol;
        }
    }

    private final Map<Function, CFunction> functions = new EnumMap<>(Function.class);

    private CudaDriver(MemorySegment handle) {
        for (Function function : Function.values()) {
            MemorySegment address = DynamicLoader.find(handle, function.symbol);
            if (address == null) {
                throw new MillraceException(
                        "the CUDA driver has no " + function.symbol + ": it is too old, 515 or newer is needed");
            }
            functions.put(function, CFunction.at(address));
        }
    }

    /**
     * Loads the driver's library. It stays loaded until the process ends.
     *
     * @throws MillraceException if no driver is installed, or if the driver lacks a function
     */
    public static CudaDriver load() {
        DynamicLoader.Opened opened = DynamicLoader.open(NAME);
        if (opened.handle() == null) {
            throw new MillraceException("there is no CUDA driver: " + opened.error()
                    + ". Install NVIDIA's driver, or in a container start it with --gpus all");
        }
        return new CudaDriver(opened.handle());
    }

    /** {@return whether this machine has a CUDA driver} */
    public static boolean isPresent() {
        return DynamicLoader.open(NAME).handle() != null;
    }

    /**
     * {@return the number of devices that this process may use}
     *
     * @throws MillraceException if the driver cannot be initialized
     */
    public int deviceCount() {
        checkedCall(Function.INITIALIZE, 0);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(INT);
            checkedCall(Function.DEVICE_COUNT, out.address());
            return out.get(INT, 0);
        }
    }

    /**
     * Enqueues a copy between any two locations that the device can access.
     *
     * @param from   address of the source bytes; they must not change until the copy is complete
     * @param stream a {@code CUstream}; the runtime's {@code cudaStream_t} is the same handle
     */
    public void copy(long to, long from, long bytes, long stream) {
        check(Function.COPY, (int) function(Function.COPY).call(to, from, bytes, stream));
    }

    /** {@return a new event, a {@code CUevent}, that does not record the time} */
    public long newEvent() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            checkedCall(Function.NEW_EVENT, out.address(), DISABLE_TIMING);
            return out.get(LONG, 0);
        }
    }

    /** Records an event in a stream, after the stream's current work. */
    public void record(long event, long stream) {
        check(Function.RECORD_EVENT, (int) function(Function.RECORD_EVENT).call(event, stream));
    }

    /** {@return whether a stream has completed the work that precedes an event; if so, this thread sees the results} */
    public boolean isDone(long event) {
        int code = (int) function(Function.QUERY_EVENT).call(event);
        if (code == NOT_READY) {
            return false;
        }
        check(Function.QUERY_EVENT, code);
        return true;
    }

    /** Destroys an event. Does not throw. */
    public void destroyEvent(long event) {
        call(Function.DESTROY_EVENT, event);
    }

    /**
     * {@return the {@code CUcontext} that is current on this thread; 0 if none is current}
     *
     * @param out memory of at least 8 bytes, which the call overwrites
     */
    public long currentContext(MemorySegment out) {
        check(Function.GET_CONTEXT, (int) function(Function.GET_CONTEXT).call(out.address()));
        return out.get(LONG, 0);
    }

    /**
     * Makes a context current on this thread. The thread must {@linkplain #leaveContext leave} the context before the
     * thread ends.
     */
    public void useContext(long context) {
        check(Function.SET_CONTEXT, (int) function(Function.SET_CONTEXT).call(context));
    }

    /**
     * Clears the current context of this thread. When a context is destroyed, it must not be current on any thread,
     * including threads that are about to end. The driver still accesses a thread's context after other threads have
     * seen the end of the thread.
     */
    public void leaveContext() {
        useContext(0);
    }

    /**
     * Allows this thread to call CUDA while another thread captures a stream. Without this permission, some calls would
     * fail or invalidate the capture.
     */
    public void ignoreCaptures() {
        try (Arena arena = Arena.ofConfined()) {
            checkedCall(Function.CAPTURE_MODE, arena.allocateFrom(INT, RELAXED_CAPTURE).address());
        }
    }

    /**
     * Makes a context current on this thread until the returned object is closed. Closing makes the previous context
     * current again.
     */
    public EnteredContext enter(long context) {
        try (Arena arena = Arena.ofConfined()) {
            EnteredContext entered = new EnteredContext(this, currentContext(arena.allocate(LONG)));
            useContext(context);
            return entered;
        }
    }

    /** The context that was current before {@link #enter}. Closing makes it current again. */
    public record EnteredContext(CudaDriver driver, long before) implements AutoCloseable {
        @Override
        public void close() {
            driver.useContext(before);
        }
    }

    public long newContext(int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            checkedCall(Function.NEW_CONTEXT, out.address(), 0, device);
            long made = out.get(LONG, 0);
            checkedCall(Function.POP_CONTEXT, out.address());
            return made;
        }
    }

    public void destroyContext(long context) {
        call(Function.DESTROY_CONTEXT, context);
    }

    /** {@return whether memory was created by {@code cuMemCreate}; all contexts of its device can then access it} */
    public boolean isOfAllContexts(long address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            boolean is = call(Function.RETAIN, out.address(), address) == 0;
            if (is) {
                call(Function.RELEASE, out.get(LONG, 0));
            }
            return is;
        }
    }

    /** {@return the {@code CUdevice} number of the current context's device} */
    public int currentDevice() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            checkedCall(Function.CURRENT_DEVICE, out.address());
            return out.get(INT, 0);
        }
    }

    /** {@return a new {@code CUstream} that has the highest priority and does not wait for the default stream} */
    public long newStream() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            checkedCall(Function.PRIORITIES, 0L, out.address());
            checkedCall(Function.NEW_STREAM, out.address(), NON_BLOCKING, out.get(INT, 0));
            return out.get(LONG, 0);
        }
    }

    /** {@return whether all work in a stream is complete} */
    public boolean isIdle(long stream) {
        int code = call(Function.QUERY_STREAM, stream);
        if (code != NOT_READY) {
            check(Function.QUERY_STREAM, code);
        }
        return code == 0;
    }

    /** Destroys a stream. CUDA releases the stream after its work is complete. Does not throw. */
    public void destroyStream(long stream) {
        call(Function.DESTROY_STREAM, stream);
    }

    /**
     * {@return new pinned host memory; it belongs to the global scope, and devices of all contexts access it at its
     * host address}
     */
    @SuppressWarnings("restricted") // safe: the length is the length of the allocation
    public MemorySegment allocatePinned(long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            checkedCall(Function.ALLOCATE_PINNED, out.address(), bytes, PORTABLE);
            return MemorySegment.ofAddress(out.get(LONG, 0)).reinterpret(bytes);
        }
    }

    /**
     * Frees pinned memory. Does not throw.
     *
     * @param memory memory from {@link #allocatePinned} that is no longer in use
     */
    public void freePinned(MemorySegment memory) {
        call(Function.FREE_PINNED, memory.address());
    }

    /** Returns a function's native entry point, for callers that must not allocate. */
    CFunction function(Function function) {
        return functions.get(function);
    }

    /**
     * Calls a function as {@link #call} does. If the call fails, throws an exception that contains CUDA's name of the
     * error.
     */
    void checkedCall(Function function, long... arguments) {
        check(function, call(function, arguments));
    }

    /**
     * Calls a function with up to five arguments. Allocates an array.
     *
     * @return the function's {@code CUresult}, 0 for success
     */
    int call(Function function, long... arguments) {
        long[] all = Arrays.copyOf(arguments, MAX_ARGUMENTS);
        return (int) function(function).call(all[0], all[1], all[2], all[3], all[4]);
    }

    void check(Function function, int code) {
        if (code != 0) {
            throw new MillraceException(function.symbol + " failed: " + name(code) + " (" + code + ")");
        }
    }

    @SuppressWarnings("restricted") // safe: the text lies in the driver's memory
    private String name(int code) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            int known = (int) function(Function.ERROR_NAME).call(code, out.address());
            return known == 0 ? NativeLibrary.text(out.get(ValueLayout.ADDRESS, 0)) : "an error without a name";
        }
    }
}
