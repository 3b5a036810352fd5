package org.millrace.net.plugin;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.Property;

/** What the classes below this package warn of, while this is open. */
final class PluginWarnings implements AutoCloseable {

    private final Logger logger = (Logger) LogManager.getLogger(PluginNetwork.class.getPackageName());
    private final List<String> warnings = new CopyOnWriteArrayList<>();
    private final AbstractAppender appender =
            new AbstractAppender("plugin warnings", null, null, false, Property.EMPTY_ARRAY) {
                @Override
                public void append(LogEvent event) {
                    if (event.getLevel().isMoreSpecificThan(Level.WARN)) {
                        warnings.add(event.getMessage().getFormattedMessage());
                    }
                }
            };

    PluginWarnings() {
        appender.start();
        Configurator.setLevel(logger, Level.WARN);
        logger.addAppender(appender);
    }

    /** Waits until there is one with a text in it; the test's own timeout bounds it. */
    String await(String text) {
        while (true) {
            for (String warning : warnings) {
                if (warning.contains(text)) {
                    return warning;
                }
            }
            Thread.onSpinWait();
        }
    }

    @Override
    public void close() {
        logger.removeAppender(appender);
        Configurator.setLevel(logger, (Level) null);
    }
}
