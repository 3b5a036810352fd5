package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.EnumMap;
import java.util.Map;
import org.millrace.MillraceException;
import org.millrace.library.DynamicLoader;
import org.millrace.library.NativeLibrary;

/**
 * The part of CUDA's driver interface ({@code libcuda}) that its runtime lacks: stores that a stream makes, and memory
 * that another process made. Pointers are plain numbers here, so that a thread that copies all the time allocates
 * nothing.
 *
 * <p>
 * A device must be current on the calling thread: see {@link CudaDevice#makeCurrent()}. Signatures: CUDA's
 * {@code cuda.h}, the same since 11.1.
 */
public final class CudaDriver {

    static final String LIBRARY = "libcuda.so.1";
    private static final int DISABLE_TIMING = 2; // CU_EVENT_DISABLE_TIMING
    private static final int NOT_READY = 600; // CUDA_ERROR_NOT_READY
    private static final int RELAXED_CAPTURE = 2; // CU_STREAM_CAPTURE_MODE_RELAXED
    private static final int NON_BLOCKING = 1; // CU_STREAM_NON_BLOCKING
    private static final int PORTABLE = 3; // CU_MEMHOSTALLOC_PORTABLE and _DEVICEMAP
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

    private final MethodHandle memcpyAsync;
    private final MethodHandle eventCreate;
    private final MethodHandle eventRecord;
    private final MethodHandle eventQuery;
    private final MethodHandle eventDestroy;
    private final MethodHandle writeValue64;
    private final MethodHandle writeValue32;
    private final MethodHandle getContext;
    private final MethodHandle setContext;
    private final Map<Function, MethodHandle> functions = new EnumMap<>(Function.class);
    private final MethodHandle errorName;

    private CudaDriver(MemorySegment library) {
        memcpyAsync = bind(library, "cuMemcpyAsync", LONG, LONG, LONG, LONG);
        eventCreate = bind(library, "cuEventCreate", LONG, INT);
        eventRecord = bind(library, "cuEventRecord", LONG, LONG);
        eventQuery = bind(library, "cuEventQuery", LONG);
        eventDestroy = bind(library, "cuEventDestroy_v2", LONG);
        writeValue64 = bind(library, "cuStreamWriteValue64_v2", LONG, LONG, LONG, INT);
        writeValue32 = bind(library, "cuStreamWriteValue32_v2", LONG, LONG, INT, INT);
        getContext = bind(library, "cuCtxGetCurrent", LONG);
        setContext = bind(library, "cuCtxSetCurrent", LONG);
        for (Function function : Function.values()) {
            functions.put(function, bind(library, function.symbol, function.arguments));
        }
        errorName = bind(library, "cuGetErrorName", INT, LONG);
    }

    /**
     * Loads the driver's library, which stays loaded.
     *
     * @return its functions
     * @throws MillraceException if there is no driver, or it lacks a function
     */
    public static CudaDriver load() {
        DynamicLoader.Opened opened = DynamicLoader.open(LIBRARY);
        if (opened.handle() == null) {
            throw new MillraceException("there is no CUDA driver: " + opened.error()
                    + ". Install NVIDIA's driver, or in a container start it with --gpus all");
        }
        return new CudaDriver(opened.handle());
    }

    /** {@return whether there is a driver of CUDA on this machine} */
    public static boolean isPresent() {
        return DynamicLoader.open(LIBRARY).handle() != null;
    }

    @SuppressWarnings("restricted") // signatures are cuda.h's
    private static MethodHandle bind(MemorySegment library, String name, MemoryLayout... arguments) {
        MemorySegment address = DynamicLoader.find(library, name);
        if (address == null) {
            throw new MillraceException("the CUDA driver has no " + name + ": it is too old, 515 or newer is needed");
        }
        return Linker.nativeLinker().downcallHandle(address, FunctionDescriptor.of(INT, arguments));
    }

    /**
     * Enqueues a copy between any two places that the device reaches.
     *
     * @param to     address of the target
     * @param from   address of the source; unchanged until the copy is made
     * @param bytes  how many
     * @param stream a {@code CUstream}, which is a {@code cudaStream_t}
     */
    public void copy(long to, long from, long bytes, long stream) {
        int code;
        try {
            code = (int) memcpyAsync.invokeExact(to, from, bytes, stream);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
        check("cuMemcpyAsync", code);
    }

    /**
     * Enqueues a store of 8 bytes, before which everything that the stream did is visible to all.
     *
     * @param stream  where
     * @param address device memory, or mapped host memory as the device sees it; a multiple of 8
     * @param value   what
     */
    public void storeLong(long stream, long address, long value) {
        int code;
        try {
            code = (int) writeValue64.invokeExact(stream, address, value, 0);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
        check("cuStreamWriteValue64", code);
    }

    /**
     * Enqueues a store of 4 bytes, as {@link #storeLong}.
     *
     * @param stream  where
     * @param address a multiple of 4
     * @param value   what
     */
    public void storeInt(long stream, long address, int value) {
        int code;
        try {
            code = (int) writeValue32.invokeExact(stream, address, value, 0);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
        check("cuStreamWriteValue32", code);
    }

    /** {@return a new event without a time: a {@code CUevent}} */
    public long newEvent() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            int code;
            try {
                code = (int) eventCreate.invokeExact(out.address(), DISABLE_TIMING);
            } catch (Throwable impossible) {
                throw new AssertionError(impossible);
            }
            check("cuEventCreate", code);
            return out.get(LONG, 0);
        }
    }

    /**
     * Enqueues an event.
     *
     * @param event  that {@link #isDone} will ask after
     * @param stream where
     */
    public void record(long event, long stream) {
        int code;
        try {
            code = (int) eventRecord.invokeExact(event, stream);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
        check("cuEventRecord", code);
    }

    /**
     * {@return whether everything before an event has completed and is visible to this thread}
     *
     * @param event as it was last recorded
     */
    public boolean isDone(long event) {
        int code;
        try {
            code = (int) eventQuery.invokeExact(event);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
        if (code == NOT_READY) {
            return false;
        }
        check("cuEventQuery", code);
        return true;
    }

    /**
     * Gives an event back.
     *
     * @param event that {@link #newEvent} made
     */
    public void destroyEvent(long event) {
        try {
            int ignored = (int) eventDestroy.invokeExact(event);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    /**
     * {@return the context that is current on this thread: a {@code CUcontext}; 0 for none}
     *
     * @param out eight bytes of the caller's
     */
    public long currentContext(MemorySegment out) {
        int code;
        try {
            code = (int) getContext.invokeExact(out.address());
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
        check("cuCtxGetCurrent", code);
        return out.get(LONG, 0);
    }

    /**
     * Makes a context current on this thread.
     *
     * @param context a {@code CUcontext}
     */
    public void useContext(long context) {
        int code;
        try {
            code = (int) setContext.invokeExact(context);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
        check("cuCtxSetCurrent", code);
    }

    /** From now on this thread's calls are none of the business of a capture that another thread makes. */
    public void ignoreCaptures() {
        try (Arena arena = Arena.ofConfined()) {
            checkedCall(Function.CAPTURE_MODE, arena.allocateFrom(INT, RELAXED_CAPTURE).address());
        }
    }

    /**
     * Does something with a context current, and makes that current again which was.
     *
     * @param context a {@code CUcontext}
     * @param what    to do
     */
    public void inContext(long context, Runnable what) {
        long before;
        try (Arena arena = Arena.ofConfined()) {
            before = currentContext(arena.allocate(LONG));
        }
        useContext(context);
        try {
            what.run();
        } finally {
            useContext(before);
        }
    }

    long newContext(int device) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            checkedCall(Function.NEW_CONTEXT, out.address(), 0, device);
            long made = out.get(LONG, 0);
            checkedCall(Function.POP_CONTEXT, out.address());
            return made;
        }
    }

    void destroyContext(long context) {
        call(Function.DESTROY_CONTEXT, context);
    }

    /**
     * {@return whether memory was made by {@code cuMemCreate}: all contexts of its device reach it then}
     *
     * @param address of the memory
     */
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

    /** {@return the number of the device of the current context: a {@code CUdevice}} */
    public int currentDevice() {
        return (int) result(Function.CURRENT_DEVICE);
    }

    /**
     * {@return a new stream of the highest priority, which does not wait for the default one: a {@code CUstream}}
     */
    public long newStream() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            checkedCall(Function.PRIORITIES, 0L, out.address());
            checkedCall(Function.NEW_STREAM, out.address(), NON_BLOCKING, out.get(INT, 0));
            return out.get(LONG, 0);
        }
    }

    /**
     * {@return whether all that was enqueued in a stream is done}
     *
     * @param stream which
     */
    public boolean isIdle(long stream) {
        int code = call(Function.QUERY_STREAM, stream);
        if (code != NOT_READY) {
            check("cuStreamQuery", code);
        }
        return code == 0;
    }

    /**
     * Gives a stream back, once its work is done.
     *
     * @param stream that {@link #newStream} made
     */
    public void destroyStream(long stream) {
        call(Function.DESTROY_STREAM, stream);
    }

    /**
     * {@return new memory of the host that devices of all contexts copy to and from at its own address; of the global
     * scope}
     *
     * @param bytes how much
     */
    @SuppressWarnings("restricted") // as long as was asked for
    public MemorySegment allocatePinned(long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            checkedCall(Function.ALLOCATE_PINNED, out.address(), bytes, PORTABLE);
            return MemorySegment.ofAddress(out.get(LONG, 0)).reinterpret(bytes);
        }
    }

    /**
     * Gives pinned memory back.
     *
     * @param memory that {@link #allocatePinned} made, which nobody uses any more
     */
    public void freePinned(MemorySegment memory) {
        call(Function.FREE_PINNED, memory.address());
    }

    private long result(Function function) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            checkedCall(function, out.address());
            return out.get(LONG, 0);
        }
    }

    /** A call of the functions below, which are no part of any hot path. */
    int call(Function function, Object... arguments) {
        try {
            return (int) functions.get(function).invokeWithArguments(arguments);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** Functions that no hot path calls: of contexts, streams, pinned memory, and for memory of other processes. */
    enum Function {
        /** Context, flags, device. */
        NEW_CONTEXT("cuCtxCreate_v2", LONG, INT, INT),
        /** Context. */
        POP_CONTEXT("cuCtxPopCurrent_v2", LONG),
        /** Context. */
        DESTROY_CONTEXT("cuCtxDestroy_v2", LONG),
        /** Mode, which is exchanged for the thread's. */
        CAPTURE_MODE("cuThreadExchangeStreamCaptureMode", LONG),
        /** Device. */
        CURRENT_DEVICE("cuCtxGetDevice", LONG),
        /** Lowest, highest. */
        PRIORITIES("cuCtxGetStreamPriorityRange", LONG, LONG),
        /** Stream, flags, priority. */
        NEW_STREAM("cuStreamCreateWithPriority", LONG, INT, INT),
        /** Stream. */
        QUERY_STREAM("cuStreamQuery", LONG),
        /** Stream. */
        DESTROY_STREAM("cuStreamDestroy_v2", LONG),
        /** Address, size, flags. */
        ALLOCATE_PINNED("cuMemHostAlloc", LONG, LONG, INT),
        /** Address. */
        FREE_PINNED("cuMemFreeHost", LONG),
        /** Base, size, address. */
        GET_ADDRESS_RANGE("cuMemGetAddressRange_v2", LONG, LONG, LONG),
        /** Descriptor, address, size, type, flags. Since 11.7. */
        RANGE_HANDLE("cuMemGetHandleForAddressRange", LONG, LONG, LONG, INT, LONG),
        /** Handle, address. */
        RETAIN("cuMemRetainAllocationHandle", LONG, LONG),
        /** Descriptor, handle, type, flags. */
        EXPORT("cuMemExportToShareableHandle", LONG, LONG, INT, LONG),
        /** Handle, descriptor, type. */
        IMPORT("cuMemImportFromShareableHandle", LONG, LONG, INT),
        /** Address, size, alignment, address wanted, flags. */
        RESERVE("cuMemAddressReserve", LONG, LONG, LONG, LONG, LONG),
        /** Address, size, offset, handle, flags. */
        MAP("cuMemMap", LONG, LONG, LONG, LONG, LONG),
        /** Address, size, access, how many. */
        SET_ACCESS("cuMemSetAccess", LONG, LONG, LONG, LONG),
        /** Address, size. */
        UNMAP("cuMemUnmap", LONG, LONG),
        /** Address, size. */
        FREE("cuMemAddressFree", LONG, LONG),
        /** Handle. */
        RELEASE("cuMemRelease", LONG);

        private final String symbol;
        private final MemoryLayout[] arguments;

        Function(String symbol, MemoryLayout... arguments) {
            this.symbol = symbol;
            this.arguments = arguments;
        }
    }

    void checkedCall(Function function, Object... arguments) {
        check(function.symbol, call(function, arguments));
    }

    private void check(String symbol, int code) {
        if (code != 0) {
            throw new MillraceException(symbol + " failed: " + name(code) + " (" + code + ")");
        }
    }

    @SuppressWarnings("restricted") // a string of the driver's
    private String name(int code) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            int known = (int) errorName.invokeExact(code, out.address());
            return known == 0 ? NativeLibrary.text(out.get(ValueLayout.ADDRESS, 0)) : "an error without a name";
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }
}
