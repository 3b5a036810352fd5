package org.millrace;

import java.net.URI;
import java.net.URISyntaxException;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.spi.LoggerContext;

/**
 * Sends warnings of Millrace to standard error if the program has log4j-core on its class path, but no configuration
 * for log4j-core. Log4j's default configuration has the level ERROR, so reports of lost connections and stalls would be
 * invisible. For log4j-api without log4j-core, the resource {@code log4j2.simplelog.properties} has the same effect.
 */
final class UnconfiguredLog {

    private static final String DEFAULT_CONFIGURATION = "org.apache.logging.log4j.core.config.DefaultConfiguration";
    private static boolean checked;

    private UnconfiguredLog() {}

    /** Sets up the log once for each process. Does not change a configuration that the program has. */
    static synchronized void showWarnings() {
        if (checked) {
            return;
        }
        checked = true;
        try {
            LoggerContext context = LogManager.getContext(false);
            // log4j-core may be missing, so its methods are called by reflection
            if (context.getClass().getName().startsWith("org.apache.logging.log4j.core.")
                    && LogManager.getRootLogger().getLevel() == Level.ERROR) {
                Object configuration = context.getClass().getMethod("getConfiguration").invoke(context);
                if (configuration.getClass().getName().equals(DEFAULT_CONFIGURATION)) {
                    URI ours = UnconfiguredLog.class.getResource("log4j2-default.properties").toURI();
                    context.getClass().getMethod("setConfigLocation", URI.class).invoke(context, ours);
                }
            }
        } catch (ReflectiveOperationException | URISyntaxException unknown) {
            LogManager.getRootLogger()
                    .error("warnings of Millrace are invisible: configure Log4j with the level WARN for org.millrace",
                            unknown);
        }
    }
}
