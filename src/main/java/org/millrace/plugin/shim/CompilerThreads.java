package org.millrace.plugin.shim;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.millrace.agent.CLibrary;
import org.millrace.config.EnvironmentSettings;
import org.millrace.config.SecuritySettings;
import org.millrace.plugin.log.NcclLogProvider;

/**
 * The JIT compiler's threads where cores are few. One that compiles on a core that a proxy thread yields keeps it until
 * the scheduler's next tick, some 4 ms, for which an operation of 10 us waits.
 */
public final class CompilerThreads {

    /** As far as Linux keeps a thread's name; the last compiles at the start what the cache says. */
    private static final List<String> NAMES = List.of("C1 CompilerThre", "C2 CompilerThre", "Training replay");
    private static final long SCHED_BATCH = 3;
    private static final long PRIO_PROCESS = 0;
    private static final long LEAST = 19;

    private CompilerThreads() {}

    /**
     * From now on they have next to nothing of a core that others want; what the shim does to C2 alone when the JVM
     * starts (compilers.c says why no less). Only in a JVM that the shim has started, and unless data is encrypted,
     * which takes a hundred times as long until it is compiled.
     */
    public static void lower() {
        boolean ownJvm = NcclLogProvider.class.getName().equals(System.getProperty("log4j.provider"));
        if (!ownJvm || new EnvironmentSettings(NativeEnvironment::get).get(SecuritySettings.TLS)) {
            return;
        }
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"));
                Arena arena = Arena.ofConfined()) {
            MethodHandle setScheduler = CLibrary.function("sched_setscheduler");
            MethodHandle setPriority = CLibrary.function("setpriority");
            MemorySegment noParameter = arena.allocate(ValueLayout.JAVA_INT);
            for (Path thread : threads) {
                if (NAMES.contains(nameOf(thread))) {
                    long id = Long.parseLong(thread.getFileName().toString());
                    // a refusal leaves it as it is
                    long batch = (long) setScheduler.invokeExact(id, SCHED_BATCH, noParameter.address());
                    long nice = (long) setPriority.invokeExact(PRIO_PROCESS, id, LEAST);
                }
            }
        } catch (IOException noProc) {
            // they keep what they have
        } catch (Throwable e) {
            throw new IllegalStateException("cannot set the priority of the compiler's threads", e);
        }
    }

    private static String nameOf(Path thread) {
        try {
            return Files.readString(thread.resolve("comm")).strip();
        } catch (IOException ended) {
            return "";
        }
    }
}
