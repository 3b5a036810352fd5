package org.millrace.net.plugin.table;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;

/**
 * A table's functions, called in the way of its version. Pointers are numbers, so that a call makes no object; results
 * are NCCL's codes.
 *
 * <p>
 * Each call notes in a {@link CallWatch} which one it is: NCCL asks that none blocks, and one that does is named.
 */
public final class NetTable {

    /** NCCL's code for success. */
    public static final int SUCCESS = 0;

    /** No traffic class: what {@code ncclNetCommConfig_t} holds. */
    static final int NO_TRAFFIC_CLASS = -1;

    private static final String[] RESULTS = {"ncclSuccess", "ncclUnhandledCudaError", "ncclSystemError",
            "ncclInternalError", "ncclInvalidArgument", "ncclInvalidUsage", "ncclRemoteError", "ncclInProgress"};

    private static final MethodHandle POINTER = shape(JAVA_LONG);
    private static final MethodHandle TWO_POINTERS = shape(JAVA_LONG, JAVA_LONG);
    private static final MethodHandle THREE_POINTERS = shape(JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle INIT_V11 = shape(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle PROPERTIES = shape(JAVA_INT, JAVA_LONG);
    private static final MethodHandle LISTEN_V8 = shape(JAVA_INT, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle LISTEN_V11 = shape(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CONNECT_V8 = shape(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CONNECT_V10 = shape(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CONNECT_V11 = shape(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle REG_MR = shape(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG);
    private static final MethodHandle REG_MR_DMA_BUF =
            shape(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_INT, JAVA_LONG);
    private static final MethodHandle ISEND_V8 = shape(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle ISEND_V9 = shape(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle ISEND_V10 =
            shape(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle IRECV_V8 =
            shape(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle IRECV_V10 =
            shape(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle IFLUSH = shape(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    private final TableVersion version;
    private final MemorySegment[] functions = new MemorySegment[NetFunction.values().length];
    private final MemorySegment isend;
    private final MemorySegment irecv;
    private final MemorySegment iflush;
    private final MemorySegment test;
    private final boolean longSizes;
    private final boolean profilerParents;

    /**
     * Reads a library's table.
     *
     * @throws ConnectionException if a function is missing that no network can do without
     */
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
            functions[function.ordinal()] = address;
        }
        isend = of(NetFunction.ISEND);
        irecv = of(NetFunction.IRECV);
        iflush = of(NetFunction.IFLUSH);
        test = of(NetFunction.TEST);
        longSizes = version.hasLongSizes();
        profilerParents = version.hasProfilerParents();
    }

    @SuppressWarnings("restricted") // a function of a library that the user named
    private static MethodHandle shape(MemoryLayout... arguments) {
        return Linker.nativeLinker().downcallHandle(FunctionDescriptor.of(JAVA_INT, arguments));
    }

    @SuppressWarnings("restricted") // a table that a library has
    static MemorySegment unscoped(long address, long bytes) {
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    private MemorySegment of(NetFunction function) {
        return functions[function.ordinal()];
    }

    public TableVersion version() {
        return version;
    }

    /** Whether the table has a function that it may do without. */
    public boolean has(NetFunction function) {
        return of(function).address() != 0;
    }

    /** Whether sizes in arrays of irecv are 64 bits each, and not 32. */
    public boolean hasLongSizes() {
        return longSizes;
    }

    /** NCCL's name of a result, and its number. */
    public static String describe(int result) {
        return (result >= 0 && result < RESULTS.length ? RESULTS[result] : "a result that NCCL does not have") + " ("
                + result + ")";
    }

    private static AssertionError impossible(Throwable e) {
        return new AssertionError("a network plugin's function cannot be called", e);
    }

    /** A call that takes one pointer: devices, close..., finalize. */
    int call(NetFunction function, long pointer) {
        try {
            return (int) POINTER.invokeExact(of(function), pointer);
        } catch (Throwable e) {
            throw impossible(e);
        }
    }

    /** Closes a communicator, a listener, or a context. */
    public int close(CallWatch watch, NetFunction function, long object) {
        watch.enter(function);
        int result = call(function, object);
        watch.leave();
        return result;
    }

    int init(long context, long communicator, long configuration, long logger, long profiler) {
        try {
            MemorySegment init = of(NetFunction.INIT);
            if (version.hasContext()) {
                return (int) INIT_V11.invokeExact(init, context, communicator, configuration, logger, profiler);
            }
            return profilerParents ? (int) TWO_POINTERS.invokeExact(init, logger, profiler)
                    : (int) POINTER.invokeExact(init, logger);
        } catch (Throwable e) {
            throw impossible(e);
        }
    }

    int getProperties(int device, long properties) {
        try {
            return (int) PROPERTIES.invokeExact(of(NetFunction.GET_PROPERTIES), device, properties);
        } catch (Throwable e) {
            throw impossible(e);
        }
    }

    public int listen(CallWatch watch, long context, int device, long handle, long listener) {
        watch.enter(NetFunction.LISTEN);
        try {
            MemorySegment listen = of(NetFunction.LISTEN);
            return version.hasContext() ? (int) LISTEN_V11.invokeExact(listen, context, device, handle, listener)
                    : (int) LISTEN_V8.invokeExact(listen, device, handle, listener);
        } catch (Throwable e) {
            throw impossible(e);
        } finally {
            watch.leave();
        }
    }

    /** @param configuration a {@code ncclNetCommConfig_t} */
    public int connect(CallWatch watch, long context, int device, long configuration, long handle, long communicator,
            long deviceHandle) {
        watch.enter(NetFunction.CONNECT);
        try {
            MemorySegment connect = of(NetFunction.CONNECT);
            if (version.hasContext()) {
                return (int) CONNECT_V11.invokeExact(connect, context, device, handle, communicator, deviceHandle);
            }
            return profilerParents
                    ? (int) CONNECT_V10.invokeExact(connect, device, configuration, handle, communicator, deviceHandle)
                    : (int) CONNECT_V8.invokeExact(connect, device, handle, communicator, deviceHandle);
        } catch (Throwable e) {
            throw impossible(e);
        } finally {
            watch.leave();
        }
    }

    public int accept(CallWatch watch, long listener, long communicator, long deviceHandle) {
        watch.enter(NetFunction.ACCEPT);
        try {
            return (int) THREE_POINTERS.invokeExact(of(NetFunction.ACCEPT), listener, communicator, deviceHandle);
        } catch (Throwable e) {
            throw impossible(e);
        } finally {
            watch.leave();
        }
    }

    public int regMr(CallWatch watch, long communicator, long data, long bytes, int type, long handle) {
        watch.enter(NetFunction.REG_MR);
        try {
            return (int) REG_MR.invokeExact(of(NetFunction.REG_MR), communicator, data, bytes, type, handle);
        } catch (Throwable e) {
            throw impossible(e);
        } finally {
            watch.leave();
        }
    }

    public int regMrDmaBuf(CallWatch watch, long communicator, long data, long bytes, int type, long offset,
            int descriptor, long handle) {
        watch.enter(NetFunction.REG_MR_DMA_BUF);
        try {
            return (int) REG_MR_DMA_BUF.invokeExact(of(NetFunction.REG_MR_DMA_BUF), communicator, data, bytes, type,
                    offset, descriptor, handle);
        } catch (Throwable e) {
            throw impossible(e);
        } finally {
            watch.leave();
        }
    }

    public int deregMr(CallWatch watch, long communicator, long handle) {
        watch.enter(NetFunction.DEREG_MR);
        try {
            return (int) TWO_POINTERS.invokeExact(of(NetFunction.DEREG_MR), communicator, handle);
        } catch (Throwable e) {
            throw impossible(e);
        } finally {
            watch.leave();
        }
    }

    public int isend(CallWatch watch, long communicator, long data, long bytes, int tag, long handle, long request) {
        watch.enter(NetFunction.ISEND);
        try {
            if (profilerParents) {
                return (int) ISEND_V10.invokeExact(isend, communicator, data, bytes, tag, handle, 0L, request);
            }
            return longSizes ? (int) ISEND_V9.invokeExact(isend, communicator, data, bytes, tag, handle, request)
                    : (int) ISEND_V8.invokeExact(isend, communicator, data, (int) bytes, tag, handle, request);
        } catch (Throwable e) {
            throw impossible(e);
        } finally {
            watch.leave();
        }
    }

    /** @param parents as many null pointers as there are buffers */
    public int irecv(CallWatch watch, long communicator, int buffers, long data, long sizes, long tags, long handles,
            long parents, long request) {
        watch.enter(NetFunction.IRECV);
        try {
            return profilerParents
                    ? (int) IRECV_V10.invokeExact(irecv, communicator, buffers, data, sizes, tags, handles, parents,
                            request)
                    : (int) IRECV_V8.invokeExact(irecv, communicator, buffers, data, sizes, tags, handles, request);
        } catch (Throwable e) {
            throw impossible(e);
        } finally {
            watch.leave();
        }
    }

    /** @param sizes 32 bits each, in every version */
    public int iflush(CallWatch watch, long communicator, int buffers, long data, long sizes, long handles,
            long request) {
        watch.enter(NetFunction.IFLUSH);
        try {
            return (int) IFLUSH.invokeExact(iflush, communicator, buffers, data, sizes, handles, request);
        } catch (Throwable e) {
            throw impossible(e);
        } finally {
            watch.leave();
        }
    }

    public int test(CallWatch watch, long request, long done, long sizes) {
        watch.enter(NetFunction.TEST);
        try {
            return (int) THREE_POINTERS.invokeExact(test, request, done, sizes);
        } catch (Throwable e) {
            throw impossible(e);
        } finally {
            watch.leave();
        }
    }

    /** Reads a C string that the plugin owns; null for a null pointer. */
    static @Nullable String text(MemorySegment pointer) {
        return pointer.address() == 0 ? null : unscoped(pointer.address(), Long.MAX_VALUE).getString(0);
    }
}
