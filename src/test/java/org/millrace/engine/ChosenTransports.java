package org.millrace.engine;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.config.Property;

/** Records the transports that this process's ranks choose. */
public final class ChosenTransports extends AbstractAppender implements AutoCloseable {

    private static final String LOGGER = TransportConnections.class.getName();

    private final List<String> lines = new CopyOnWriteArrayList<>();

    private ChosenTransports() {
        super("chosen-transports", null, null, true, Property.EMPTY_ARRAY);
    }

    /** Starts to record. The recording ends when the returned object is closed. */
    public static ChosenTransports listen() {
        ChosenTransports chosen = new ChosenTransports();
        chosen.start();
        Configurator.setLevel(LOGGER, Level.INFO);
        config().setAdditive(false);
        config().addAppender(chosen, Level.INFO, null);
        return chosen;
    }

    private static LoggerConfig config() {
        return ((LoggerContext) LogManager.getContext(false)).getConfiguration().getLoggerConfig(LOGGER);
    }

    @Override
    public void append(LogEvent event) {
        lines.add(event.getMessage().getFormattedMessage());
    }

    /** Returns lines in the format of {@link Connections#describe}. */
    public List<String> lines() {
        return List.copyOf(lines);
    }

    @Override
    public void close() {
        config().removeAppender(getName());
        config().setAdditive(true);
        Configurator.setLevel(LOGGER, Level.WARN);
        stop();
    }
}
