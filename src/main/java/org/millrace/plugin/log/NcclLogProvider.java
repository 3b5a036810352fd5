package org.millrace.plugin.log;

import java.net.URI;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.Marker;
import org.apache.logging.log4j.message.Message;
import org.apache.logging.log4j.message.MessageFactory;
import org.apache.logging.log4j.spi.AbstractLogger;
import org.apache.logging.log4j.spi.ExtendedLogger;
import org.apache.logging.log4j.spi.LoggerContext;
import org.apache.logging.log4j.spi.LoggerContextFactory;
import org.apache.logging.log4j.spi.NoOpThreadContextMap;
import org.apache.logging.log4j.spi.Provider;
import org.jspecify.annotations.Nullable;

/** What Log4j's interface is told to log through: the value of its property {@code log4j.provider}. */
public final class NcclLogProvider extends Provider {

    private static final int PRIORITY = 100;

    /** Made by Log4j. */
    public NcclLogProvider() {
        super(PRIORITY, CURRENT_VERSION, Factory.class, NoOpThreadContextMap.class);
    }

    /** One context serves the whole process. */
    public static final class Factory implements LoggerContextFactory {

        private final LoggerContext context = new Context();

        /** Made by Log4j. */
        public Factory() {}

        @Override
        public LoggerContext getContext(String caller, ClassLoader loader, Object externalContext,
                boolean currentContext) {
            return context;
        }

        @Override
        public LoggerContext getContext(String caller, ClassLoader loader, Object externalContext,
                boolean currentContext, URI configuration, String name) {
            return context;
        }

        @Override
        public void removeContext(LoggerContext removed) {
            // There is one, and it stays.
        }

        @Override
        public boolean isClassLoaderDependent() {
            return false;
        }
    }

    /** The loggers by name. Each has one message factory, as Log4j recommends: that of the first who asks. */
    private static final class Context implements LoggerContext {

        private final Map<String, ExtendedLogger> loggers = new ConcurrentHashMap<>();

        @Override
        public @Nullable Object getExternalContext() {
            return null;
        }

        @Override
        public ExtendedLogger getLogger(String name) {
            return loggers.computeIfAbsent(name, Logger::new);
        }

        @Override
        public ExtendedLogger getLogger(String name, MessageFactory messages) {
            return loggers.computeIfAbsent(name, missing -> new Logger(missing, messages));
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

    /**
     * Everything down to INFO goes to NCCL's logger, which has the last word on what is printed; DEBUG and TRACE are
     * dropped.
     */
    private static final class Logger extends AbstractLogger {

        private static final long serialVersionUID = 1L;

        Logger(String name) {
            super(name);
        }

        Logger(String name, MessageFactory messages) {
            super(name, messages);
        }

        @Override
        public Level getLevel() {
            return Level.INFO;
        }

        private static boolean isLogged(Level level) {
            return level.isMoreSpecificThan(Level.INFO);
        }

        @Override
        public void logMessage(String caller, Level level, Marker marker, Message message, Throwable thrown) {
            String simpleName = getName().substring(getName().lastIndexOf('.') + 1);
            String line = simpleName + ": " + message.getFormattedMessage()
                    + (thrown == null ? "" : ": " + NcclLog.describe(thrown));
            if (level.isMoreSpecificThan(Level.WARN)) {
                NcclLog.warn(line);
            } else {
                NcclLog.info(line);
            }
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, Message message, Throwable thrown) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, CharSequence message, Throwable thrown) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, Object message, Throwable thrown) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Throwable thrown) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object... parameters) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object p0) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object p0, Object p1) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object p0, Object p1, Object p2) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object p0, Object p1, Object p2,
                Object p3) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object p0, Object p1, Object p2, Object p3,
                Object p4) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object p0, Object p1, Object p2, Object p3,
                Object p4, Object p5) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object p0, Object p1, Object p2, Object p3,
                Object p4, Object p5, Object p6) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object p0, Object p1, Object p2, Object p3,
                Object p4, Object p5, Object p6, Object p7) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object p0, Object p1, Object p2, Object p3,
                Object p4, Object p5, Object p6, Object p7, Object p8) {
            return isLogged(level);
        }

        @Override
        public boolean isEnabled(Level level, Marker marker, String message, Object p0, Object p1, Object p2, Object p3,
                Object p4, Object p5, Object p6, Object p7, Object p8, Object p9) {
            return isLogged(level);
        }
    }
}
