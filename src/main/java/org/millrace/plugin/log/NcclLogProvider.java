package org.millrace.plugin.log;

import org.apache.logging.log4j.spi.NoOpThreadContextMap;
import org.apache.logging.log4j.spi.Provider;

/** What Log4j's interface is told to log through: the value of its property {@code log4j.provider}. */
public final class NcclLogProvider extends Provider {

    private static final int PRIORITY = 100;

    /** Made by Log4j. */
    public NcclLogProvider() {
        super(PRIORITY, CURRENT_VERSION, NcclLoggerContextFactory.class, NoOpThreadContextMap.class);
    }
}
