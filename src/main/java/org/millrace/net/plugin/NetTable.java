package org.millrace.net.plugin;

import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;
import org.millrace.net.ConnectionException;

/**
 * The functions of a plugin's table, called as the version of the table requires. Pointers are passed as numbers, so a
 * call creates no object. Results are NCCL's result codes.
 *
 * <p>
 * Each call records its function in a {@link CallWatch}. NCCL requires that these functions do not block, and a
 * function that blocks is logged.
 */
final class NetTable {

    /** NCCL's result code for success. */
    public static final int SUCCESS = 0;

    /** Value in {@code ncclNetCommConfig_t} for a connection without a traffic class. */
    static final int NO_TRAFFIC_CLASS = -1;

    private static final String[] RESULTS = {"ncclSuccess", "ncclUnhandledCudaError", "ncclSystemError",
            "ncclInternalError", "ncclInvalidArgument", "ncclInvalidUsage", "ncclRemoteError", "ncclInProgress"};

    private final TableVersion version;
    private final CFunction[] functions = new CFunction[NetFunction.values().length];
    private final boolean longSizes;
    private final boolean profilerParents;

    /** Reads a library's table. Throws an exception if the table lacks a function that every network needs. */
    NetTable(TableVersion version, MemorySegment symbol) {
        this.version = version;
        MemorySegment table = unscoped(symbol.address(), version.table().byteSize());
        for (NetFunction function : NetFunction.values()) {
            MemorySegment address = MemorySegment.NULL;
            if (function != NetFunction.FINALIZE || version.hasContext()) {
                address = table.get(ValueLayout.ADDRESS,
                        version.table().byteOffset(PathElement.groupElement(function.toString())));
            }
            if (address.address() == 0 && function.isRequired()) {
                throw new ConnectionException("its table " + version.symbol() + " has no " + function);
            }
            functions[function.ordinal()] = CFunction.at(address);
        }
        longSizes = version.hasLongSizes();
        profilerParents = version.hasProfilerParents();
    }

    @SuppressWarnings("restricted") // the segment lies in the table of a loaded library
    static MemorySegment unscoped(long address, long bytes) {
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    private CFunction of(NetFunction function) {
        return functions[function.ordinal()];
    }

    TableVersion version() {
        return version;
    }

    public boolean has(NetFunction function) {
        return of(function).address() != 0;
    }

    /** Returns whether the sizes in the arrays of irecv have 64 bits. Otherwise they have 32 bits. */
    public boolean hasLongSizes() {
        return longSizes;
    }

    /** Returns NCCL's name of a result code, followed by the code. */
    public static String describe(int result) {
        return (result >= 0 && result < RESULTS.length ? RESULTS[result] : "a result that NCCL does not have") + " ("
                + result + ")";
    }

    /** Closes a communicator, a listener, or a context. */
    public int close(CallWatch watch, NetFunction function, long object) {
        return call(watch, function, object, 0, 0, 0, 0, 0);
    }

    int devices(CallWatch watch, long count) {
        return call(watch, NetFunction.DEVICES, count, 0, 0, 0, 0, 0);
    }

    private int call(CallWatch watch, NetFunction function, long first, long second, long third, long fourth,
            long fifth, long sixth) {
        watch.enter(function);
        int result = (int) of(function).call(first, second, third, fourth, fifth, sixth);
        watch.leave();
        return result;
    }

    private int call(CallWatch watch, NetFunction function, long first, long second, long third, long fourth,
            long fifth, long sixth, long seventh, long eighth) {
        watch.enter(function);
        int result = (int) of(function).call(first, second, third, fourth, fifth, sixth, seventh, eighth, 0);
        watch.leave();
        return result;
    }

    int init(CallWatch watch, long context, long communicator, long configuration, long logger, long profiler) {
        return version.hasContext()
                ? call(watch, NetFunction.INIT, context, communicator, configuration, logger, profiler, 0)
                // Plugins before v10 ignore the argument for the profiler.
                : call(watch, NetFunction.INIT, logger, profiler, 0, 0, 0, 0);
    }

    int getProperties(CallWatch watch, int device, long properties) {
        return call(watch, NetFunction.GET_PROPERTIES, device, properties, 0, 0, 0, 0);
    }

    public int listen(CallWatch watch, long context, int device, long handle, long listener) {
        return version.hasContext() ? call(watch, NetFunction.LISTEN, context, device, handle, listener, 0, 0)
                : call(watch, NetFunction.LISTEN, device, handle, listener, 0, 0, 0);
    }

    /** @param configuration address of a {@code ncclNetCommConfig_t} with the options of the connection */
    public int connect(CallWatch watch, long context, int device, long configuration, long handle, long communicator,
            long deviceHandle) {
        if (version.hasContext()) {
            return call(watch, NetFunction.CONNECT, context, device, handle, communicator, deviceHandle, 0);
        }
        return profilerParents
                ? call(watch, NetFunction.CONNECT, device, configuration, handle, communicator, deviceHandle, 0)
                : call(watch, NetFunction.CONNECT, device, handle, communicator, deviceHandle, 0, 0);
    }

    public int accept(CallWatch watch, long listener, long communicator, long deviceHandle) {
        return call(watch, NetFunction.ACCEPT, listener, communicator, deviceHandle, 0, 0, 0);
    }

    public int regMr(CallWatch watch, long communicator, long data, long bytes, int type, long handle) {
        return call(watch, NetFunction.REG_MR, communicator, data, bytes, type, handle, 0);
    }

    public int regMrDmaBuf(CallWatch watch, long communicator, long data, long bytes, int type, long offset,
            int descriptor, long handle) {
        return call(watch, NetFunction.REG_MR_DMA_BUF, communicator, data, bytes, type, offset, descriptor, handle, 0);
    }

    public int deregMr(CallWatch watch, long communicator, long handle) {
        return call(watch, NetFunction.DEREG_MR, communicator, handle, 0, 0, 0, 0);
    }

    public int isend(CallWatch watch, long communicator, long data, long bytes, int tag, long handle, long request) {
        return profilerParents ? call(watch, NetFunction.ISEND, communicator, data, bytes, tag, handle, 0, request, 0)
                : call(watch, NetFunction.ISEND, communicator, data, bytes, tag, handle, request);
    }

    /** @param parents address of an array with one null pointer for each buffer, in place of profiler events */
    public int irecv(CallWatch watch, long communicator, int buffers, long data, long sizes, long tags, long handles,
            long parents, long request) {
        return profilerParents
                ? call(watch, NetFunction.IRECV, communicator, buffers, data, sizes, tags, handles, parents, request)
                : call(watch, NetFunction.IRECV, communicator, buffers, data, sizes, tags, handles, request, 0);
    }

    /** @param sizes address of an array of 32-bit sizes, in every version of the table */
    public int iflush(CallWatch watch, long communicator, int buffers, long data, long sizes, long handles,
            long request) {
        return call(watch, NetFunction.IFLUSH, communicator, buffers, data, sizes, handles, request);
    }

    public int test(CallWatch watch, long request, long done, long sizes) {
        return call(watch, NetFunction.TEST, request, done, sizes, 0, 0, 0);
    }

    /** Returns a C string that belongs to the plugin; null for a null pointer. */
    static @Nullable String text(MemorySegment pointer) {
        return pointer.address() == 0 ? null : unscoped(pointer.address(), Long.MAX_VALUE).getString(0);
    }

    /** The functions of NCCL's network table that Millrace calls, with their names in the table. */
    enum NetFunction {
        INIT("init"),
        DEVICES("devices"),
        GET_PROPERTIES("getProperties"),
        LISTEN("listen"),
        CONNECT("connect"),
        ACCEPT("accept"),
        REG_MR("regMr"),
        REG_MR_DMA_BUF("regMrDmaBuf"),
        DEREG_MR("deregMr"),
        ISEND("isend"),
        IRECV("irecv"),
        IFLUSH("iflush"),
        TEST("test"),
        CLOSE_SEND("closeSend"),
        CLOSE_RECV("closeRecv"),
        CLOSE_LISTEN("closeListen"),
        /** Function that exists since v11 of the table. */
        FINALIZE("finalize");

        private final String symbol;

        NetFunction(String symbol) {
            this.symbol = symbol;
        }

        /** Returns whether every table must contain this function. */
        boolean isRequired() {
            return this != FINALIZE && this != REG_MR_DMA_BUF && this != IFLUSH;
        }

        @Override
        public String toString() {
            return symbol;
        }
    }
}
