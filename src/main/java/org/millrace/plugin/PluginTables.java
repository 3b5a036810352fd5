package org.millrace.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Map;

/**
 * Makes native functions of the plugin's methods. Nothing that a method throws leaves an upcall, as that would end the
 * process: it becomes a line in NCCL's log, and a result code.
 */
final class PluginTables {

    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();

    private final Map<Class<?>, Object> targets;

    PluginTables(NetPlugin net, TunerPlugin tuner, GinPlugin gin) {
        this.targets = Map.of(NetPlugin.class, net, TunerPlugin.class, tuner, GinPlugin.class, gin);
    }

    /** Fills the shim's tables; returns NCCL's result code. The functions live as long as the process. */
    int install(MemorySegment installFunction) {
        return ShimInterface.install(installFunction, this::nativeFunction);
    }

    @SuppressWarnings("restricted") // functions for the shim
    private MemorySegment nativeFunction(ShimInterface.Entry entry) {
        try {
            MethodHandle method = LOOKUP.findVirtual(entry.target(), entry.name(), entry.descriptor().toMethodType())
                    .bindTo(targets.get(entry.target()));
            MethodHandle report = LOOKUP.findStatic(PluginTables.class, "report",
                    MethodType.methodType(int.class, String.class, Throwable.class));
            MethodHandle guarded = MethodHandles.catchException(method, Throwable.class, report.bindTo(entry.name()));
            return Linker.nativeLinker().upcallStub(guarded, entry.descriptor(), Arena.global());
        } catch (ReflectiveOperationException e) {
            throw new LinkageError("the plugin has no method for " + entry, e);
        }
    }

    private static int report(String operation, Throwable failure) {
        try {
            NcclLog.warn(operation + ": " + NcclLog.describe(failure));
            return NcclResult.of(failure);
        } catch (Throwable worse) {
            // Out of memory or stack: all that is left is to say that it failed.
            return NcclResult.INTERNAL_ERROR;
        }
    }
}
