package org.millrace.plugin.takeover;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.millrace.plugin.log.NcclLog;

/**
 * The threads of the JVM's compilers. On a core that it shares with them, a thread that yields to a compiler gets the
 * core back at the scheduler's next tick, some 4 ms later: so what they do after the warm-up must wait for idle cores.
 * (The shim has lowered C2's from the start: {@code compilers.c}.)
 */
final class CompilerThreads {

    /** {@code jvm_options.c} sets it: another program's JVM is not ours to change. */
    private static final String OURS = "org.millrace.plugin.jvm";
    private static final Path THREADS = Path.of("/proc/self/task");
    private static final String COMPILER = "C[12] Comp.*";
    private static final int SCHED_IDLE = 5;

    private CompilerThreads() {}

    /** Lets them run only where a core is idle; where that is not possible they stay as they are. */
    static void lower() {
        if (!Boolean.getBoolean(OURS)) {
            return;
        }
        try (Stream<Path> threads = Files.list(THREADS)) {
            List<Path> compilers = threads.filter(CompilerThreads::compiles).toList();
            lower(compilers.stream().mapToInt(thread -> Integer.parseInt(thread.getFileName().toString())).toArray());
        } catch (IOException e) {
            NcclLog.trace("compiler threads keep their priority: " + e);
        }
    }

    private static boolean compiles(Path thread) {
        try {
            return Files.readString(thread.resolve("comm")).strip().matches(COMPILER);
        } catch (IOException e) {
            return false; // it has ended
        }
    }

    @SuppressWarnings("restricted") // the C library
    private static void lower(int[] threads) {
        Linker linker = Linker.nativeLinker();
        MethodHandle schedule = linker.downcallHandle(linker.defaultLookup().find("sched_setscheduler").orElseThrow(),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT,
                        ValueLayout.ADDRESS));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment noPriority = arena.allocate(ValueLayout.JAVA_INT);
            for (int thread : threads) {
                int ignored = (int) schedule.invokeExact(thread, SCHED_IDLE, noPriority);
            }
        } catch (Throwable e) {
            throw new IllegalStateException("cannot call sched_setscheduler", e);
        }
    }
}
