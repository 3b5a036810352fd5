package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import org.millrace.MillraceException;
import org.millrace.foreign.CFunction;
import org.millrace.library.DynamicLoader;
import org.millrace.library.NativeLibrary;

/**
 * The library of CUDA's driver: its functions by name, its results as exceptions, and calls of what no hot path calls.
 */
final class DriverLibrary {

    static final String NAME = "libcuda.so.1";
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final int MOST_ARGUMENTS = 5;

    /** Functions that no hot path calls: of contexts, streams, pinned memory, and for memory of other processes. */
    enum Function {
        /** Flags. */
        INITIALIZE("cuInit"),
        /** How many. */
        DEVICE_COUNT("cuDeviceGetCount"),
        /** Context, flags, device. */
        NEW_CONTEXT("cuCtxCreate_v2"),
        /** Context. */
        POP_CONTEXT("cuCtxPopCurrent_v2"),
        /** Context. */
        DESTROY_CONTEXT("cuCtxDestroy_v2"),
        /** Mode, which is exchanged for the thread's. */
        CAPTURE_MODE("cuThreadExchangeStreamCaptureMode"),
        /** Device. */
        CURRENT_DEVICE("cuCtxGetDevice"),
        /** Lowest, highest. */
        PRIORITIES("cuCtxGetStreamPriorityRange"),
        /** Stream, flags, priority. */
        NEW_STREAM("cuStreamCreateWithPriority"),
        /** Stream. */
        QUERY_STREAM("cuStreamQuery"),
        /** Stream. */
        DESTROY_STREAM("cuStreamDestroy_v2"),
        /** Address, size, flags. */
        ALLOCATE_PINNED("cuMemHostAlloc"),
        /** Address. */
        FREE_PINNED("cuMemFreeHost"),
        /** Base, size, address. */
        GET_ADDRESS_RANGE("cuMemGetAddressRange_v2"),
        /** Descriptor, address, size, type, flags. Since 11.7. */
        RANGE_HANDLE("cuMemGetHandleForAddressRange"),
        /** Handle, address. */
        RETAIN("cuMemRetainAllocationHandle"),
        /** Descriptor, handle, type, flags. */
        EXPORT("cuMemExportToShareableHandle"),
        /** Handle, descriptor, type. */
        IMPORT("cuMemImportFromShareableHandle"),
        /** Address, size, alignment, address wanted, flags. */
        RESERVE("cuMemAddressReserve"),
        /** Address, size, offset, handle, flags. */
        MAP("cuMemMap"),
        /** Address, size, access, how many. */
        SET_ACCESS("cuMemSetAccess"),
        /** Address, size. */
        UNMAP("cuMemUnmap"),
        /** Address, size. */
        FREE("cuMemAddressFree"),
        /** Handle. */
        RELEASE("cuMemRelease");

        private final String symbol;

        Function(String symbol) {
            this.symbol = symbol;
        }
    }

    private final MemorySegment handle;
    private final Map<Function, CFunction> functions = new EnumMap<>(Function.class);
    private final CFunction errorName;
    private final CFunction streamWaitEvent;

    private DriverLibrary(MemorySegment handle) {
        this.handle = handle;
        for (Function function : Function.values()) {
            functions.put(function, bind(function.symbol));
        }
        errorName = bind("cuGetErrorName");
        streamWaitEvent = bind("cuStreamWaitEvent");
    }

    /**
     * Loads it; it stays loaded.
     *
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

    CFunction bind(String name) {
        MemorySegment address = DynamicLoader.find(handle, name);
        if (address == null) {
            throw new MillraceException("the CUDA driver has no " + name + ": it is too old, 515 or newer is needed");
        }
        return CFunction.at(address);
    }

    /** As {@link #call}; what is no success is an exception with CUDA's name for it. */
    void checkedCall(Function function, long... arguments) {
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
    int call(Function function, long... arguments) {
        long[] all = Arrays.copyOf(arguments, MOST_ARGUMENTS);
        return (int) functions.get(function).call(all[0], all[1], all[2], all[3], all[4]);
    }

    /** Has a stream wait for an event; allocates nothing. */
    void await(long event, long stream) {
        check("cuStreamWaitEvent", (int) streamWaitEvent.call(stream, event, 0));
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
            int known = (int) errorName.call(code, out.address());
            return known == 0 ? NativeLibrary.text(out.get(ValueLayout.ADDRESS, 0)) : "an error without a name";
        }
    }
}
