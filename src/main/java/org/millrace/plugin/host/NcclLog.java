package org.millrace.plugin.host;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.foreign.CFunction;

/**
 * Writes lines for the user through NCCL's own logger. The logger obeys {@code NCCL_DEBUG}, and adds host, process and
 * GPU. {@code ncclGetLastError} returns the newest warning. Lines are dropped until NCCL has passed its logger to this
 * class.
 */
public final class NcclLog {

    private static final String PREFIX = "NET/Millrace: ";
    private static final Arena NAMES = Arena.global();
    private static final MemorySegment FILE = NAMES.allocateFrom("millrace");
    private static final MemorySegment FORMAT = NAMES.allocateFrom("%s");

    /**
     * NCCL's logger. Replaced each time an NCCL library initializes the plugin, because a process may have several of
     * these libraries. Read by any thread.
     */
    private static volatile @Nullable Logger logger;

    /**
     * A logger.
     *
     * @param warnLevel number of the level WARN. RCCL and NCCLX have one level more than NCCL before WARN
     */
    private record Logger(CFunction function, int warnLevel) {
    }

    private NcclLog() {}

    /**
     * Makes another logger receive all lines from now on.
     *
     * @param function  address of the logger; 0 for none
     * @param warnLevel number of the level WARN in the logger's library; 0 if the logger's signature differs from the
     *                  signature of NCCL's logger; such a logger is not called
     */
    public static void use(long function, int warnLevel) {
        logger = function == 0 || warnLevel == 0 ? null
                : new Logger(CFunction.at(MemorySegment.ofAddress(function)), warnLevel);
    }

    /** Logs a problem that the user should fix. Printed under NCCL_DEBUG=WARN. */
    public static void warn(String message) {
        log(plugin_h.NCCL_LOG_WARN(), message);
    }

    /** Logs an action and its parameters. Printed under NCCL_DEBUG=INFO. */
    public static void info(String message) {
        log(plugin_h.NCCL_LOG_INFO(), message);
    }

    /** Logs a detail for debugging of the plugin. Printed under NCCL_DEBUG=TRACE. */
    public static void trace(String message) {
        log(plugin_h.NCCL_LOG_TRACE(), message);
    }

    private static void log(int level, String message) {
        Logger to = logger;
        if (to == null) {
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment line = arena.allocateFrom(PREFIX + message.replaceAll("\\s*\\R\\s*", " | "));
            to.function.call(to.warnLevel + level - plugin_h.NCCL_LOG_WARN(),
                    plugin_h.NCCL_INIT() | plugin_h.NCCL_NET(), FILE.address(), 0, FORMAT.address(), line.address());
        }
    }

    public static String describe(Throwable failure) {
        StringBuilder line = new StringBuilder();
        for (Throwable each = failure; each != null; each = each.getCause()) {
            String message = each.getMessage() == null ? each.getClass().getName() : each.getMessage();
            if (line.indexOf(message) < 0) {
                line.append(line.isEmpty() ? "" : ": ").append(message);
            }
        }
        return line.toString();
    }
}
