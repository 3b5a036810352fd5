package org.millrace.plugin.shim;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.Map;
import org.millrace.config.ConfigurationException;
import org.millrace.nccl.NcclResult;
import org.millrace.net.ConnectionException;
import org.millrace.plugin.log.NcclLog;

/**
 * What {@code src/main/c/upcalls.h} says, in Java: the functions that the shim calls, in the order of its struct, and
 * how native functions are made of the methods behind them. A method that returns has succeeded. Nothing that a method
 * throws leaves an upcall, as that would end the process: it becomes a line in NCCL's log, and a result code.
 */
public final class Upcalls {

    /** {@code MILLRACE_PLUGIN_INTERFACE}: grows with every change of the functions. */
    public static final int VERSION = 2;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

    /** Which of NCCL's tables a function belongs to: each has one object behind it. */
    public enum Table {
        /** The network's. */
        NET,
        /** The tuner's. */
        TUNER,
        /** GIN's and RMA's. */
        GIN
    }

    /**
     * A function of the struct. Pointers are declared as numbers: see {@link NativeMemory}.
     *
     * @param name       its name in the struct, and that of the public method behind it
     * @param descriptor its arguments; each returns an {@code ncclResult_t}
     */
    record Entry(String name, Table table, FunctionDescriptor descriptor) {
    }

    static final List<Entry> ENTRIES = List.of(net("init", INT, LONG, LONG, LONG), net("devices", LONG),
            net("getProperties", INT, INT, LONG), net("listen", LONG, INT, LONG, LONG),
            net("connect", LONG, INT, LONG, LONG, LONG), net("accept", LONG, LONG, LONG),
            net("regMr", LONG, LONG, LONG, INT, LONG), net("deregMr", LONG, LONG),
            net("isend", LONG, LONG, LONG, LONG, LONG), net("irecv", LONG, LONG, LONG, LONG, LONG),
            net("test", LONG, LONG, LONG), net("closeSend", LONG), net("closeRecv", LONG), net("closeListen", LONG),
            net("finalize", LONG), tuner("tunerInit", LONG, LONG, LONG, LONG, LONG),
            tuner("tunerGetCollInfo", LONG, INT, LONG, INT, LONG, INT, INT, INT, LONG), tuner("tunerFinalize", LONG),
            gin("ginInit", LONG, LONG, LONG), gin("ginDevices", LONG), gin("ginGetProperties", INT, INT, LONG),
            gin("ginListen", LONG, INT, LONG, LONG), gin("ginConnect", LONG, LONG, INT, INT, INT, LONG, LONG),
            gin("ginCreateContext", INT, LONG, INT, INT, INT, INT, INT, LONG, LONG),
            gin("ginRegMrSym", LONG, LONG, LONG, INT, LONG, LONG), gin("ginDeregMrSym", LONG, LONG),
            gin("ginDestroyContext", LONG), gin("ginCloseColl", LONG), gin("ginCloseListen", LONG),
            gin("ginFinalize", LONG), gin("rmaCreateContext", LONG, INT, LONG),
            gin("rmaPut", LONG, INT, LONG, LONG, LONG, LONG, LONG, INT, LONG),
            gin("rmaPutSignal", LONG, INT, LONG, LONG, LONG, LONG, LONG, INT, LONG, LONG, LONG, INT, LONG),
            gin("rmaGet", LONG, INT, LONG, LONG, LONG, LONG, LONG, INT, LONG), gin("rmaFlush", LONG, INT, INT, LONG),
            gin("rmaTest", LONG, LONG, LONG));

    private final Map<Table, Object> targets;

    /** Functions of these objects: each has a public method for every entry of its table. */
    public Upcalls(Map<Table, Object> targets) {
        this.targets = targets;
    }

    private static Entry net(String name, MemoryLayout... arguments) {
        return new Entry(name, Table.NET, FunctionDescriptor.of(INT, arguments));
    }

    private static Entry tuner(String name, MemoryLayout... arguments) {
        return new Entry(name, Table.TUNER, FunctionDescriptor.of(INT, arguments));
    }

    private static Entry gin(String name, MemoryLayout... arguments) {
        return new Entry(name, Table.GIN, FunctionDescriptor.of(INT, arguments));
    }

    /**
     * Gives the functions to the shim; they live as long as the process.
     *
     * @param install the shim's {@code millraceInstallUpcalls}
     */
    @SuppressWarnings("restricted") // calls the shim
    public int install(MemorySegment install) {
        MethodHandle call =
                Linker.nativeLinker().downcallHandle(install, FunctionDescriptor.of(INT, INT, ValueLayout.ADDRESS));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = arena.allocate(ValueLayout.ADDRESS, ENTRIES.size());
            for (int i = 0; i < ENTRIES.size(); i++) {
                struct.setAtIndex(ValueLayout.ADDRESS, i, nativeFunction(ENTRIES.get(i)));
            }
            return (int) call.invokeExact(VERSION, struct);
        } catch (Throwable e) {
            throw new IllegalStateException("cannot give the plugin's functions to the shim", e);
        }
    }

    @SuppressWarnings("restricted") // functions for the shim
    private MemorySegment nativeFunction(Entry entry) {
        try {
            Object target = targets.get(entry.table);
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            MethodHandle method = lookup.findVirtual(target.getClass(), entry.name,
                    entry.descriptor.toMethodType().changeReturnType(void.class)).bindTo(target);
            MethodHandle succeeding = MethodHandles.filterReturnValue(method,
                    MethodHandles.constant(int.class, NcclResult.SUCCESS.code()));
            MethodHandle report = lookup.findStatic(Upcalls.class, "report",
                    MethodType.methodType(int.class, String.class, Throwable.class));
            MethodHandle guarded = MethodHandles.catchException(succeeding, Throwable.class, report.bindTo(entry.name));
            return Linker.nativeLinker().upcallStub(guarded, entry.descriptor, Arena.global());
        } catch (ReflectiveOperationException e) {
            throw new LinkageError("the plugin has no method for " + entry, e);
        }
    }

    private static int report(String operation, Throwable failure) {
        try {
            NcclLog.warn(operation + ": " + NcclLog.describe(failure));
            return result(failure).code();
        } catch (Throwable worse) {
            // Out of memory or stack: all that is left is to say that it failed.
            return NcclResult.INTERNAL_ERROR.code();
        }
    }

    private static NcclResult result(Throwable failure) {
        return switch (failure) {
            case ConnectionException lost -> NcclResult.REMOTE_ERROR;
            case ConfigurationException wrong -> NcclResult.INVALID_USAGE;
            case IllegalArgumentException wrong -> NcclResult.INVALID_ARGUMENT;
            default -> NcclResult.INTERNAL_ERROR;
        };
    }
}
