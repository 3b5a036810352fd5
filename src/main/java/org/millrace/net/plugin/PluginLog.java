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
 * Log lines of this process's plugins. NCCL's logger takes a format and its arguments, and a plugin's own threads call
 * it at any time. It is therefore a C function ({@code foreign_log.c}), which keeps the lines until they are fetched
 * here. A warning that belongs to a failed call becomes part of the failure's message. That message may never be shown,
 * because plugins also complain when a peer leaves regularly. All other lines appear in our own log.
 */
final class PluginLog {

    private static final Logger LOG = LogManager.getLogger(PluginLog.class);
    private static final int LINE_BYTES = 1024;

    private static final String SAYS = "a network plugin says: {}";
    private static final long AGE_NANOS = 1_000_000_000;

    /** Lines that are neither logged nor part of a failure's message; guarded by itself. */
    private static final Deque<Line> LINES = new ArrayDeque<>();

    /** Whether a plugin has received the logger. */
    private static volatile boolean used;

    private record Line(boolean warning, String text, long nanos) {

        void pass() {
            LOG.log(warning ? Level.WARN : Level.INFO, SAYS, text);
        }
    }

    /** Functions that are bound when the first plugin is loaded. */
    private static final class Functions {

        static final SymbolLookup LIBRARY = BundledLibrary.symbols();
        static final MemorySegment LOGGER = LIBRARY.find("millraceForeignLog").orElseThrow();
        static final MemorySegment PROFILER = LIBRARY.find("millraceForeignProfile").orElseThrow();
        static final CFunction LINE = CFunction.at(LIBRARY.find("millraceForeignLine").orElseThrow());
    }

    private PluginLog() {}

    /** Returns the address of a {@code ncclDebugLogger_t}. */
    static long logger() {
        used = true;
        return Functions.LOGGER.address();
    }

    /** Returns the address of a {@code ncclProfilerCallback_t}, which ignores its calls. */
    static long profiler() {
        return Functions.PROFILER.address();
    }

    /** Fetches the lines that plugins have logged since the last call. */
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

    /** Logs the plugins' lines that are too old to belong to a failure. */
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

    /** Returns the last warning that is not logged yet, for the message of a failure; null if there is none. */
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
