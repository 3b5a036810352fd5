package org.millrace.plugin.log;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.logging.log4j.message.MessageFactory;
import org.apache.logging.log4j.spi.ExtendedLogger;
import org.apache.logging.log4j.spi.LoggerContext;

/** The loggers by name. Each has one message factory, as Log4j recommends: that of the first who asks. */
final class NcclLoggerContext implements LoggerContext {

    private final Map<String, ExtendedLogger> loggers = new ConcurrentHashMap<>();

    @Override
    public Object getExternalContext() {
        return null;
    }

    @Override
    public ExtendedLogger getLogger(String name) {
        return loggers.computeIfAbsent(name, NcclLogger::new);
    }

    @Override
    public ExtendedLogger getLogger(String name, MessageFactory messages) {
        return loggers.computeIfAbsent(name, missing -> new NcclLogger(missing, messages));
    }

    @Override
    public boolean hasLogger(String name) {
        return loggers.containsKey(name);
    }

    @Override
    public boolean hasLogger(String name, MessageFactory messages) {
        return hasLogger(name);
    }

    @Override
    public boolean hasLogger(String name, Class<? extends MessageFactory> messages) {
        return hasLogger(name);
    }
}
