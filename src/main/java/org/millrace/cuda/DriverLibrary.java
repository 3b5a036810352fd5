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
 * The library of CUDA's driver: its functions by name, its results as exceptions, and calls of what no hot path calls.
 */
final class DriverLibrary {

    static final String NAME = "libcuda.so.1";
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

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

    private final MemorySegment handle;
    private final Map<Function, MethodHandle> functions = new EnumMap<>(Function.class);
    private final MethodHandle errorName;
    private final MethodHandle streamWaitEvent;

    private DriverLibrary(MemorySegment handle) {
        this.handle = handle;
        for (Function function : Function.values()) {
            functions.put(function, bind(function.symbol, function.arguments));
        }
        errorName = bind("cuGetErrorName", INT, LONG);
        streamWaitEvent = bind("cuStreamWaitEvent", LONG, LONG, INT);
    }

    /**
     * Loads it; it stays loaded.
     *
     * @return it
     * @throws MillraceException if there is no driver, or it lacks a function
     */
    static DriverLibrary load() {
        DynamicLoader.Opened opened = DynamicLoader.open(NAME);
        if (opened.handle() == null) {
            throw new MillraceException("there is no CUDA driver: " + opened.error()
                    + ". Install NVIDIA's driver, or in a container start it with --gpus all");
        }
        return new DriverLibrary(opened.handle());
    }

    @SuppressWarnings("restricted") // signatures are cuda.h's
    MethodHandle bind(String name, MemoryLayout... arguments) {
        MemorySegment address = DynamicLoader.find(handle, name);
        if (address == null) {
            throw new MillraceException("the CUDA driver has no " + name + ": it is too old, 515 or newer is needed");
        }
        return Linker.nativeLinker().downcallHandle(address, FunctionDescriptor.of(INT, arguments));
    }

    /** As {@link #call}; what is no success is an exception with CUDA's name for it. */
    void checkedCall(Function function, Object... arguments) {
        check(function.symbol, call(function, arguments));
    }

    /** {@return what a function of one result stores} */
    long result(Function function) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(LONG);
            checkedCall(function, out.address());
            return out.get(LONG, 0);
        }
    }

    /** {@return a {@code CUresult}} */
    int call(Function function, Object... arguments) {
        try {
            return (int) functions.get(function).invokeWithArguments(arguments);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** Has a stream wait for an event; allocates nothing. */
    void await(long event, long stream) {
        int code;
        try {
            code = (int) streamWaitEvent.invokeExact(stream, event, 0);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
        check("cuStreamWaitEvent", code);
    }

    void check(String symbol, int code) {
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
