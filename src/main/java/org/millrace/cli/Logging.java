package org.millrace.cli;

import org.millrace.config.LogLevel;

/**
 * Gives Log4j our configuration, unless the user has named one. It is not called {@code log4j2.xml} or the like, so
 * that a program that uses Millrace as a library never finds it by accident.
 */
final class Logging {

    private static final String CONFIGURATION = "log4j2.configurationFile";
    /** Read by log4j2-millrace-cli.properties. Not {@code millrace.*}: those are settings. */
    private static final String LEVEL = "org.millrace.cli.level";

    private Logging() {}

    static void configure(LogLevel level) {
        boolean chosen =
                System.getProperty(CONFIGURATION) != null || System.getProperty("log4j.configurationFile") != null
                        || System.getenv("LOG4J_CONFIGURATION_FILE") != null;
        if (!chosen) {
            System.setProperty(CONFIGURATION, "classpath:log4j2-millrace-cli.properties");
        }
        System.setProperty(LEVEL, level.loggerLevel());
    }
}
