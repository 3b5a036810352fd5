package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.MillraceException;
import org.millrace.cuda.DriverLibrary.Function;
import org.millrace.foreign.CFunction;
import org.millrace.library.DynamicLoader;

/**
 * The part of CUDA's driver interface ({@code libcuda}) that its runtime lacks, memory that another process made among
 * it. Pointers are plain numbers here, so that a thread that copies all the time allocates nothing.
 *
 * <p>
 * A device must be current on the calling thread: see {@link CudaDevice#makeCurrent()}. Signatures: CUDA's
 * {@code cuda.h}, the same since 11.1.
 */
public final class CudaDriver {

    private static final int DISABLE_TIMING = 2; // CU_EVENT_DISABLE_TIMING
    private static final int NOT_READY = 600; // CUDA_ERROR_NOT_READY
    private static final int RELAXED_CAPTURE = 2; // CU_STREAM_CAPTURE_MODE_RELAXED
    private static final int NON_BLOCKING = 1; // CU_STREAM_NON_BLOCKING
    private static final int PORTABLE = 3; // CU_MEMHOSTALLOC_PORTABLE and _DEVICEMAP
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

    private final CFunction memcpyAsync;
    private final CFunction eventCreate;
    private final CFunction eventRecord;
    private final CFunction eventQuery;
    private final CFunction eventDestroy;
    private final CFunction getContext;
    private final CFunction setContext;
    private final DriverLibrary library;

    private CudaDriver(DriverLibrary library) {
        this.library = library;
        memcpyAsync = library.bind("cuMemcpyAsync");
        eventCreate = library.bind("cuEventCreate");
        eventRecord = library.bind("cuEventRecord");
        eventQuery = library.bind("cuEventQuery");
        eventDestroy = library.bind("cuEventDestroy_v2");
        getContext = library.bind("cuCtxGetCurrent");
        setContext = library.bind("cuCtxSetCurrent");
    }

    /**
     * Loads the driver's library, which stays loaded.
     *
     * @throws MillraceException if there is no driver, or it lacks a function
     */
    public static CudaDriver load() {
        return new CudaDriver(DriverLibrary.load());
    }

    /** {@return whether there is a driver of CUDA on this machine} */
    public static boolean isPresent() {
        return DynamicLoader.open(DriverLibrary.NAME).handle() != null;
    }

    /**
     * {@return how many devices this process may use}
     *
     * @throws MillraceException if the driver cannot be used at all
     */
    public int deviceCount() {
        library.checkedCall(Function.INITIALIZE, 0);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(INT);
            library.checkedCall(Function.DEVICE_COUNT, out.address());
            return out.get(INT, 0);
        }
    }

    /** {@return the functions of the driver that no hot path calls} */
    DriverLibrary library() {
        return library;
    }

    /**
     * Enqueues a copy between any two places that the device reaches.
     *
     * @param from   address of the source; unchanged until the copy is made
     * @param stream a {@code CUstream}, which is a {@code cudaStream_t}
     */
    public void copy(long to, long from, long bytes, long stream) {
        library.check("cuMemcpyAsync", (int) memcpyAsync.call(to, from, bytes, stream));
    }

    /** {@return a new event without a time: a {@code CUevent}} */
    public long newEvent() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            library.check("cuEventCreate", (int) eventCreate.call(out.address(), DISABLE_TIMING));
            return out.get(LONG, 0);
        }
    }

    /**
     * Enqueues an event.
     *
     * @param event that {@link #isDone} will ask after
     */
    public void record(long event, long stream) {
        library.check("cuEventRecord", (int) eventRecord.call(event, stream));
    }

    /** Has what is enqueued from now on begin when everything before an event has completed. */
    public void await(long event, long stream) {
        library.await(event, stream);
    }

    /** {@return whether everything before an event has completed and is visible to this thread} */
    public boolean isDone(long event) {
        int code = (int) eventQuery.call(event);
        if (code == NOT_READY) {
            return false;
        }
        library.check("cuEventQuery", code);
        return true;
    }

    /**
     * Gives an event back.
     *
     * @param event that {@link #newEvent} made
     */
    public void destroyEvent(long event) {
        eventDestroy.call(event);
    }

    /**
     * {@return the context that is current on this thread: a {@code CUcontext}; 0 for none}
     *
     * @param out eight bytes of the caller's
     */
    public long currentContext(MemorySegment out) {
        library.check("cuCtxGetCurrent", (int) getContext.call(out.address()));
        return out.get(LONG, 0);
    }

    /**
     * Makes a context current on this thread.
     *
     * @param context a {@code CUcontext}
     */
    public void useContext(long context) {
        library.check("cuCtxSetCurrent", (int) setContext.call(context));
    }

    /** From now on this thread's calls are none of the business of a capture that another thread makes. */
    public void ignoreCaptures() {
        try (Arena arena = Arena.ofConfined()) {
            library.checkedCall(Function.CAPTURE_MODE, arena.allocateFrom(INT, RELAXED_CAPTURE).address());
        }
    }

    /**
     * Does something with a context current, and makes that current again which was.
     *
     * @param context a {@code CUcontext}
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
            library.checkedCall(Function.NEW_CONTEXT, out.address(), 0, device);
            long made = out.get(LONG, 0);
            library.checkedCall(Function.POP_CONTEXT, out.address());
            return made;
        }
    }

    void destroyContext(long context) {
        library.call(Function.DESTROY_CONTEXT, context);
    }

    /** {@return whether memory was made by {@code cuMemCreate}: all contexts of its device reach it then} */
    public boolean isOfAllContexts(long address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            boolean is = library.call(Function.RETAIN, out.address(), address) == 0;
            if (is) {
                library.call(Function.RELEASE, out.get(LONG, 0));
            }
            return is;
        }
    }

    /** {@return the number of the device of the current context: a {@code CUdevice}} */
    public int currentDevice() {
        return (int) library.result(Function.CURRENT_DEVICE);
    }

    /** {@return a new stream of the highest priority, which does not wait for the default one: a {@code CUstream}} */
    public long newStream() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            library.checkedCall(Function.PRIORITIES, 0L, out.address());
            library.checkedCall(Function.NEW_STREAM, out.address(), NON_BLOCKING, out.get(INT, 0));
            return out.get(LONG, 0);
        }
    }

    /** {@return whether all that was enqueued in a stream is done} */
    public boolean isIdle(long stream) {
        int code = library.call(Function.QUERY_STREAM, stream);
        if (code != NOT_READY) {
            library.check("cuStreamQuery", code);
        }
        return code == 0;
    }

    /**
     * Gives a stream back, once its work is done.
     *
     * @param stream that {@link #newStream} made
     */
    public void destroyStream(long stream) {
        library.call(Function.DESTROY_STREAM, stream);
    }

    /**
     * {@return new memory of the host that devices of all contexts copy to and from at its own address; of the global
     * scope}
     */
    @SuppressWarnings("restricted") // as long as was asked for
    public MemorySegment allocatePinned(long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            library.checkedCall(Function.ALLOCATE_PINNED, out.address(), bytes, PORTABLE);
            return MemorySegment.ofAddress(out.get(LONG, 0)).reinterpret(bytes);
        }
    }

    /**
     * Gives pinned memory back.
     *
     * @param memory that {@link #allocatePinned} made, which nobody uses any more
     */
    public void freePinned(MemorySegment memory) {
        library.call(Function.FREE_PINNED, memory.address());
    }
}
