package org.millrace.plugin.log;

import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.Marker;
import org.apache.logging.log4j.message.Message;
import org.apache.logging.log4j.message.MessageFactory;
import org.apache.logging.log4j.spi.AbstractLogger;

/**
 * Everything down to INFO goes to NCCL's logger, which has the last word on what is printed; DEBUG and TRACE are
 * dropped.
 */
final class NcclLogger extends AbstractLogger {

    private static final long serialVersionUID = 1L;

    NcclLogger(String name) {
        super(name);
    }

    NcclLogger(String name, MessageFactory messages) {
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
    public boolean isEnabled(Level level, Marker marker, String message, Object p0, Object p1, Object p2, Object p3) {
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
