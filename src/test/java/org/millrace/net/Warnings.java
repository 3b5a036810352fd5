package org.millrace.net;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.Property;

/** Collects warnings, or all messages, of a class or of a package with its subpackages, until this object is closed. */
public final class Warnings implements AutoCloseable {

    private final Logger logger;
    private final List<String> warnings = new CopyOnWriteArrayList<>();
    private final Level level;
    private final AbstractAppender appender =
            new AbstractAppender("warnings under test", null, null, false, Property.EMPTY_ARRAY) {
                @Override
                public void append(LogEvent event) {
                    if (event.getLevel().isMoreSpecificThan(level)) {
                        warnings.add(event.getMessage().getFormattedMessage());
                    }
                }
            };

    /** Begins to listen to a logger with the name of a class or package. */
    public Warnings(String name) {
        this(name, Level.WARN);
    }

    /** Begins to listen to messages of a level or above. */
    public Warnings(String name, Level level) {
        this.level = level;
        logger = (Logger) LogManager.getLogger(name);
        appender.start();
        Configurator.setLevel(logger, level);
        logger.addAppender(appender);
    }

    public List<String> all() {
        return List.copyOf(warnings);
    }

    /** Waits for a message that contains a text. Fails if the test's timeout interrupts this thread first. */
    public String await(String text) {
        while (true) {
            if (Thread.interrupted()) {
                throw new AssertionError("no warning with '" + text + "' in " + warnings);
            }
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
