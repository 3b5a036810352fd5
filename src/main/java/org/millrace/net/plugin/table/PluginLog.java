package org.millrace.net.plugin.table;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.library.BundledLibrary;

/**
 * What plugins of this process log. NCCL's logger takes a format and its arguments, and is called by threads of the
 * plugin's own at any time: so it is a function in C ({@code foreign_log.c}), which keeps the lines until they are
 * fetched here.
 */
final class PluginLog {

    private static final Logger LOG = LogManager.getLogger(PluginLog.class);
    private static final int LINE_BYTES = 1024;

    /** Bound when the first plugin is loaded. */
    private static final class Functions {

        static final SymbolLookup LIBRARY = BundledLibrary.load(Functions::open);
        static final MemorySegment LOGGER = LIBRARY.find("millraceForeignLog").orElseThrow();
        static final MemorySegment PROFILER = LIBRARY.find("millraceForeignProfile").orElseThrow();
        static final MethodHandle LINE = line();

        @SuppressWarnings("restricted") // our own library
        private static SymbolLookup open(Path file) {
            return SymbolLookup.libraryLookup(file, Arena.global());
        }

        @SuppressWarnings("restricted") // our own library
        private static MethodHandle line() {
            return Linker.nativeLinker()
                    .downcallHandle(LIBRARY.find("millraceForeignLine").orElseThrow(),
                            FunctionDescriptor.of(JAVA_INT, ADDRESS));
        }
    }

    private PluginLog() {}

    /** A {@code ncclDebugLogger_t}. */
    static long logger() {
        return Functions.LOGGER.address();
    }

    /** A {@code ncclProfilerCallback_t}, which nobody listens to. */
    static long profiler() {
        return Functions.PROFILER.address();
    }

    /**
     * Passes what plugins have logged on to our own log.
     *
     * @return the last warning among it; null if there is none
     */
    static synchronized @Nullable String pass() {
        String warning = null;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocate(LINE_BYTES);
            int level;
            while ((level = (int) Functions.LINE.invokeExact(text)) != 0) {
                String line = text.getString(0).strip();
                if (level == plugin_h.NCCL_LOG_WARN()) {
                    warning = line;
                    LOG.warn("a network plugin says: {}", line);
                } else {
                    LOG.info("a network plugin says: {}", line);
                }
            }
        } catch (Throwable e) {
            throw new IllegalStateException("what network plugins log cannot be read", e);
        }
        return warning;
    }
}
