package org.millrace.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.function.Function;

/** What {@code src/main/c/upcalls.h} says, in Java: the functions that the shim calls, in the order of its struct. */
final class ShimInterface {

    /** {@code MILLRACE_PLUGIN_INTERFACE}: grows with every change of the functions. */
    static final int VERSION = 2;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

    /**
     * A function of the struct. Pointers are declared as numbers: see {@link NativeMemory}.
     *
     * @param name       its name in the struct, and that of the method behind it
     * @param target     the class that has the method
     * @param descriptor its arguments; each returns an {@code ncclResult_t}
     */
    record Entry(String name, Class<?> target, FunctionDescriptor descriptor) {
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

    private ShimInterface() {}

    private static Entry net(String name, MemoryLayout... arguments) {
        return new Entry(name, NetPlugin.class, FunctionDescriptor.of(INT, arguments));
    }

    private static Entry tuner(String name, MemoryLayout... arguments) {
        return new Entry(name, TunerPlugin.class, FunctionDescriptor.of(INT, arguments));
    }

    private static Entry gin(String name, MemoryLayout... arguments) {
        return new Entry(name, GinPlugin.class, FunctionDescriptor.of(INT, arguments));
    }

    /**
     * Gives the functions to the shim.
     *
     * @param install   its {@code millraceInstallUpcalls}
     * @param functions makes the native function of an entry
     * @return NCCL's result code
     */
    @SuppressWarnings("restricted") // calls the shim
    static int install(MemorySegment install, Function<Entry, MemorySegment> functions) {
        MethodHandle call =
                Linker.nativeLinker().downcallHandle(install, FunctionDescriptor.of(INT, INT, ValueLayout.ADDRESS));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = arena.allocate(ValueLayout.ADDRESS, ENTRIES.size());
            for (int i = 0; i < ENTRIES.size(); i++) {
                struct.setAtIndex(ValueLayout.ADDRESS, i, functions.apply(ENTRIES.get(i)));
            }
            return (int) call.invokeExact(VERSION, struct);
        } catch (Throwable e) {
            throw new IllegalStateException("cannot give the plugin's functions to the shim", e);
        }
    }
}
