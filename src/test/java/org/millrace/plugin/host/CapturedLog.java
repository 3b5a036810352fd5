package org.millrace.plugin.host;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import org.millrace.ffi.plugin.plugin_h;

/** Replaces NCCL's logger, and captures lines as {@code LEVEL text}. */
public final class CapturedLog {

    private static final List<String> LINES = new ArrayList<>();
    private static final MemorySegment FUNCTION = function();

    private CapturedLog() {}

    /** Begins to capture, and discards the lines captured so far. */
    public static void begin() {
        NcclLog.use(address(), plugin_h.NCCL_LOG_WARN());
        synchronized (LINES) {
            LINES.clear();
        }
    }

    public static long address() {
        return FUNCTION.address();
    }

    public static List<String> lines() {
        synchronized (LINES) {
            return List.copyOf(LINES);
        }
    }

    @SuppressWarnings("restricted")
    private static MemorySegment function() {
        try {
            MethodType type = MethodType.methodType(void.class, int.class, long.class, long.class, int.class,
                    long.class, long.class);
            FunctionDescriptor descriptor = FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG,
                    ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);
            return Linker.nativeLinker()
                    .upcallStub(MethodHandles.lookup().findStatic(CapturedLog.class, "log", type), descriptor,
                            Arena.global());
        } catch (ReflectiveOperationException e) {
            throw new LinkageError("no such method", e);
        }
    }

    static void log(int level, long flags, long file, int line, long format, long text) {
        synchronized (LINES) {
            LINES.add(
                    level + " " + (NativeMemory.string(format).equals("%s") ? NativeMemory.string(text) : "a format"));
        }
    }
}
