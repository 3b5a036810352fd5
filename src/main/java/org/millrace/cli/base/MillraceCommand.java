package org.millrace.cli.base;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.millrace.config.Configuration;
import org.millrace.config.Settings.LogSubsystem;
import org.millrace.config.Settings;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;

/** The command {@code millrace} and the options that all its commands share. {@code Main} adds the commands. */
@Command(
        name = "millrace",
        description = "NCCL for Java, and NCCL's network proxy in Java.",
        synopsisSubcommandLabel = "COMMAND",
        versionProvider = Version.class,
        exitCodeListHeading = "%nExit status:%n",
        exitCodeList = {"0:success", "1:a failure, or wrong values", "2:wrong usage, or a setting that is not usable"})
public final class MillraceCommand extends CommandGroup {

    private static final String CONFIGURATION = "log4j2.configurationFile";
    /**
     * Name of the system property for the log level, which log4j2-millrace-cli.properties reads. The prefix is not
     * {@code millrace.*}, because that prefix marks settings.
     */
    private static final String LEVEL = "org.millrace.cli.level";

    @Option(names = {"-h", "--help"}, usageHelp = true, scope = ScopeType.INHERIT, description = "Show this help.")
    private boolean help;

    @Option(names = {"-V", "--version"}, versionHelp = true, description = "Show the version.")
    private boolean version;

    @Option(
            names = "--stacktrace",
            scope = ScopeType.INHERIT,
            description = "Show where in the program a failure happened.")
    private boolean stackTraces;

    @Option(
            names = "-D",
            paramLabel = "NAME=VALUE",
            scope = ScopeType.INHERIT,
            description = "Set a setting, stronger than the environment; 'millrace doctor' shows them all.")
    private Map<String, String> settings = new LinkedHashMap<>();

    /** Returns a copy of the settings on the command line. Their keys are the names of the environment variables. */
    public Map<String, String> settings() {
        return new LinkedHashMap<>(settings);
    }

    public boolean stackTraces() {
        return stackTraces;
    }

    /** Configures logging. Call this method before the first logger is created. */
    public void prepareLogging() {
        try {
            Configuration read = Configuration.load(settings);
            configureLogging(read.get(Settings.LOG_LEVEL), read.get(Settings.LOG_SUBSYSTEMS));
        } catch (IllegalArgumentException refused) {
            // This method does not report unusable settings. The command reads the settings again and reports the error
            // itself.
            configureLogging(Settings.LOG_LEVEL.defaultValue(), Settings.LOG_SUBSYSTEMS.defaultValue());
        }
    }

    /**
     * Selects Millrace's configuration file of Log4j, unless the user has named another file. The file has no standard
     * name such as {@code log4j2.xml}. A program that uses Millrace as a library therefore does not load the file by
     * accident. Warnings and errors of every subsystem are logged, as in NCCL.
     */
    public static void configureLogging(Settings.LogLevel level, Set<LogSubsystem> subsystems) {
        boolean chosen =
                System.getProperty(CONFIGURATION) != null || System.getProperty("log4j.configurationFile") != null
                        || System.getenv("LOG4J_CONFIGURATION_FILE") != null;
        if (!chosen) {
            System.setProperty(CONFIGURATION, "classpath:log4j2-millrace-cli.properties");
        }
        System.setProperty(LEVEL, level.loggerLevel());
        Settings.LogLevel others = level == Settings.LogLevel.VERSION ? level : Settings.LogLevel.WARN;
        for (LogSubsystem each : LogSubsystem.values()) {
            System.setProperty(LEVEL + '.' + each, (subsystems.contains(each) ? level : others).loggerLevel());
        }
    }
}
