package org.millrace.plugin.host;

import java.net.URI;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.Marker;
import org.apache.logging.log4j.message.Message;
import org.apache.logging.log4j.message.MessageFactory;
import org.apache.logging.log4j.message.ParameterizedMessageFactory;
import org.apache.logging.log4j.simple.SimpleLogger;
import org.apache.logging.log4j.simple.SimpleLoggerContext;
import org.apache.logging.log4j.simple.SimpleLoggerContextFactory;
import org.apache.logging.log4j.spi.ExtendedLogger;
import org.apache.logging.log4j.spi.ExtendedLoggerWrapper;
import org.apache.logging.log4j.spi.LoggerContext;
import org.apache.logging.log4j.spi.LoggerRegistry;
import org.apache.logging.log4j.spi.NoOpThreadContextMap;
import org.apache.logging.log4j.spi.Provider;
import org.jspecify.annotations.Nullable;

/**
 * Log4j's provider that logs through NCCL, set by the property {@code log4j.provider}. Public, because Log4j
 * instantiates it.
 */
public final class NcclLogProvider extends Provider {

    private static final int PRIORITY = 100;

    /** Creates the provider. Log4j calls this constructor by reflection. */
    public NcclLogProvider() {
        super(PRIORITY, CURRENT_VERSION, Factory.class, NoOpThreadContextMap.class);
    }

    public static final class Factory extends SimpleLoggerContextFactory {

        private final LoggerContext context = new Context();

        /** Creates the factory. Log4j calls this constructor by reflection. */
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
    }

    private static final class Context extends SimpleLoggerContext {

        /** Logger that decides which levels are enabled. It logs no line. */
        private final SimpleLogger level =
                (SimpleLogger) super.getLogger("level", ParameterizedMessageFactory.INSTANCE);

        Context() {
            level.setLevel(Level.INFO);
        }

        @Override
        public ExtendedLogger getLogger(String name) {
            return getLogger(name, null);
        }

        @Override
        public ExtendedLogger getLogger(String name, @Nullable MessageFactory messages) {
            LoggerRegistry<ExtendedLogger> made = getLoggerRegistry();
            MessageFactory factory = messages == null ? ParameterizedMessageFactory.INSTANCE : messages;
            if (!made.hasLogger(name, factory)) {
                made.putIfAbsent(name, factory, new Logger(level, name, factory));
            }
            return made.getLogger(name, factory);
        }
    }

    /**
     * Passes lines of the level INFO or above to NCCL's logger, which decides whether to print them. DEBUG and TRACE
     * are dropped.
     */
    private static final class Logger extends ExtendedLoggerWrapper {

        private static final long serialVersionUID = 1L;

        Logger(ExtendedLogger level, String name, MessageFactory messages) {
            super(level, name, messages);
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
    }
}
