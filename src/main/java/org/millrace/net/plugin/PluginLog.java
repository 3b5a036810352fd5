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
 * What plugins of this process log. NCCL's logger takes a format and its arguments, and is called by threads of the
 * plugin's own at any time: so it is a function in C ({@code foreign_log.c}), which keeps the lines until they are
 * fetched here. A warning that comes with a call that fails becomes part of that failure's message, which may never be
 * shown: a peer that leaves as it should makes plugins complain. All other lines come out in our own log.
 */
final class PluginLog {

    private static final Logger LOG = LogManager.getLogger(PluginLog.class);
    private static final int LINE_BYTES = 1024;

    private static final String SAYS = "a network plugin says: {}";
    private static final long AGE_NANOS = 1_000_000_000;

    /** Lines that are neither passed on nor part of a failure's message; guarded by itself. */
    private static final Deque<Line> LINES = new ArrayDeque<>();

    /** A plugin has been given the logger. */
    private static volatile boolean used;

    private record Line(boolean warning, String text, long nanos) {

        void pass() {
            LOG.log(warning ? Level.WARN : Level.INFO, SAYS, text);
        }
    }

    /** Bound when the first plugin is loaded. */
    private static final class Functions {

        static final SymbolLookup LIBRARY = BundledLibrary.symbols();
        static final MemorySegment LOGGER = LIBRARY.find("millraceForeignLog").orElseThrow();
        static final MemorySegment PROFILER = LIBRARY.find("millraceForeignProfile").orElseThrow();
        static final CFunction LINE = CFunction.at(LIBRARY.find("millraceForeignLine").orElseThrow());
    }

    private PluginLog() {}

    /** A {@code ncclDebugLogger_t}. */
    static long logger() {
        used = true;
        return Functions.LOGGER.address();
    }

    /** A {@code ncclProfilerCallback_t}, which ignores its calls. */
    static long profiler() {
        return Functions.PROFILER.address();
    }

    /** Notes what plugins have logged since. */
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

    /** Passes on what plugins have logged, so long ago that no failure comes of it. */
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

    /** The last warning that is not passed on yet, for the message of a failure; null if there is none. */
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
