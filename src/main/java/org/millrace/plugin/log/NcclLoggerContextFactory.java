package org.millrace.plugin.log;

import java.net.URI;
import org.apache.logging.log4j.spi.LoggerContext;
import org.apache.logging.log4j.spi.LoggerContextFactory;

/** One context serves the whole process. */
public final class NcclLoggerContextFactory implements LoggerContextFactory {

    private final LoggerContext context = new NcclLoggerContext();

    /** Made by Log4j. */
    public NcclLoggerContextFactory() {}

    @Override
    public LoggerContext getContext(String caller, ClassLoader loader, Object externalContext, boolean currentContext) {
        return context;
    }

    @Override
    public LoggerContext getContext(String caller, ClassLoader loader, Object externalContext, boolean currentContext,
            URI configuration, String name) {
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
