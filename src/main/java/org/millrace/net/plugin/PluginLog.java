package org.millrace.net.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.foreign.CFunction;
import org.millrace.library.BundledLibrary;

/**
 * The log lines of this process's plugins. NCCL's logger function has a format and variable arguments, and the plugin's
 * own threads may call it at any time. The logger is therefore a C function ({@code foreign_log.c}), which stores the
 * lines until this class fetches them.
 *
 * <p>
 * The message of a failed call includes the newest warning that is not logged yet. The warning may come from any plugin
 * of this process. This warning and all other lines that are not logged yet are then logged only at level DEBUG. The
 * reason is that plugins also log warnings when a peer closes the connection normally. If no call fails, this class
 * logs a line after a second.
 */
final class PluginLog {

    private static final Logger LOG = LogManager.getLogger(PluginLog.class);
    private static final int LINE_BYTES = 1024;

    private static final String SAYS = "a network plugin reports: {}";
    private static final long AGE_NANOS = 1_000_000_000;

    /**
     * Fetched lines that still must be logged or included in the message of a failure. Guarded by this queue's monitor.
     */
    private static final Deque<Line> LINES = new ArrayDeque<>();

    /** Whether the logger function was passed to a plugin. */
    private static volatile boolean used;

    private record Line(boolean warning, String text, long nanos) {

        void pass() {
            LOG.log(warning ? Level.WARN : Level.INFO, SAYS, text);
        }
    }

    /** The C functions. They are linked when the first plugin is loaded. */
    private static final class Functions {

        static final SymbolLookup LIBRARY = BundledLibrary.symbols();
        static final MemorySegment LOGGER = LIBRARY.find("millraceForeignLog").orElseThrow();
        static final MemorySegment PROFILER = LIBRARY.find("millraceForeignProfile").orElseThrow();
        static final CFunction LINE = CFunction.at(LIBRARY.find("millraceForeignLine").orElseThrow());
    }

    private PluginLog() {}

    /** Returns the address of the logger function, a {@code ncclDebugLogger_t}. */
    static long logger() {
        used = true;
        return Functions.LOGGER.address();
    }

    /** Returns the address of a {@code ncclProfilerCallback_t} that ignores all its calls. */
    static long profiler() {
        return Functions.PROFILER.address();
    }

    /** Fetches the lines that plugins have logged since the last call of this method. */
    private static void fetch() {
        long now = System.nanoTime();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocate(LINE_BYTES);
            int level;
            while ((level = (int) Functions.LINE.call(text.address())) != 0) {
                LINES.add(new Line(level == plugin_h.NCCL_LOG_WARN(), text.getString(0).strip(), now));
            }
        }
    }

    /** Logs the plugins' lines that are older than a second, and therefore belong to no failure. */
    static void pass() {
        if (!used) {
            return;
        }
        synchronized (LINES) {
            fetch();
            long now = System.nanoTime();
            while (!LINES.isEmpty() && now - LINES.getFirst().nanos > AGE_NANOS) {
                LINES.removeFirst().pass();
            }
        }
    }

    /**
     * Returns the newest warning that is not logged yet, for the message of a failure; null if all warnings are logged.
     * The warning may come from any plugin of this process.
     */
    static @Nullable String take() {
        synchronized (LINES) {
            fetch();
            String warning = null;
            for (Line line : LINES) {
                LOG.debug(SAYS, line.text);
                warning = line.warning ? line.text : warning;
            }
            LINES.clear();
            return warning;
        }
    }
}
