package org.millrace.config;

/**
 * The values of {@code NCCL_DEBUG} and what they print of our own messages. NCCL orders them VERSION, WARN, INFO,
 * ABORT, TRACE (nccl_common.h), so that ABORT prints what INFO prints.
 */
public enum LogLevel {
    /** Errors only. */
    VERSION("ERROR"),
    /** Warnings and errors. */
    WARN("WARN"),
    /** What happens at set-up too. */
    INFO("INFO"),
    /** As {@link #INFO}. */
    ABORT("INFO"),
    /** Also each operation that is launched, and what went another way than it was first tried. */
    TRACE("TRACE");

    private final String loggerLevel;

    LogLevel(String loggerLevel) {
        this.loggerLevel = loggerLevel;
    }

    /** {@return the level of the loggers, as Log4j names it} */
    public String loggerLevel() {
        return loggerLevel;
    }
}
