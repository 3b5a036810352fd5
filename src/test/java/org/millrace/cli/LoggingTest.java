package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.cli.base.MillraceCommand;
import org.millrace.config.Settings.LogSubsystem;
import org.millrace.config.Settings;

/** Log output of the command line. Each case is a separate process, because Log4j reads its configuration only once. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class LoggingTest {

    @TempDir
    private Path directory;

    /** Logs messages of several levels. With arguments, main first initializes logging as the command line does. */
    static final class Probe {

        private Probe() {}

        public static void main(String[] arguments) {
            if (arguments.length > 0) {
                MillraceCommand.configureLogging(Settings.LogLevel.valueOf(arguments[0]),
                        arguments.length == 1 ? Settings.LOG_SUBSYSTEMS.defaultValue()
                                : Set.of(LogSubsystem.valueOf(arguments[1])));
            }
            if (arguments.length > 1) {
                for (String each : List.of("net.socket.SocketSender", "engine.Registrations", "engine.CollNet",
                        "engine.TransportConnections.P2P")) {
                    LogManager.getLogger("org.millrace." + each).info("of {}", each);
                    LogManager.getLogger("org.millrace." + each).warn("of {}", each);
                }
                return;
            }
            Logger logger = LogManager.getLogger("org.millrace.cli.doctor.Probe");
            logger.error("an error", new IllegalStateException("the cause"));
            logger.warn("a warning");
            logger.info("an info");
            logger.trace("a trace");
        }
    }

    private static List<String> log(ProcessBuilder builder) throws Exception {
        Process process = builder.redirectErrorStream(true).start();
        try {
            List<String> lines = process.inputReader().lines().toList();
            assertEquals(0, process.waitFor(), lines.toString());
            return lines;
        } finally {
            process.destroyForcibly();
        }
    }

    private static List<String> log(String... arguments) throws Exception {
        return log(ChildMain.builder(Probe.class, arguments));
    }

    /**
     * If the deadline passes before ranks have begun, their threads are interrupted, possibly while they load classes.
     * Log4j must therefore be loaded before the interrupt.
     */
    @Test
    void aRunThatEndsBeforeItBeganSaysNothingOfTheLogger() throws Exception {
        Process process = ChildMain.builder(Main.class, "perf", "all_reduce", "--device", "host", "--deadline", "1ms")
                .redirectErrorStream(true)
                .start();
        try {
            List<String> lines = process.inputReader().lines().toList();
            assertEquals(1, process.waitFor(), lines.toString());
            assertTrue(lines.stream().anyMatch(line -> line.contains(" (--deadline)")), lines.toString());
            assertFalse(lines.stream()
                    .anyMatch(line -> line.contains("FATAL") || line.contains("Exception") || line.startsWith("\tat ")),
                    lines.toString());
        } finally {
            process.destroyForcibly();
        }
    }

    @Test
    void warningsAndErrorsAreOneShortLineEach() throws Exception {
        List<String> lines = log("WARN");
        assertEquals(2, lines.size(), lines.toString());
        assertTrue(lines.get(0).matches("\\d\\d:\\d\\d:\\d\\d\\.\\d{3} ERROR Probe: an error.*the cause"),
                lines.toString());
        assertTrue(lines.get(1).matches("\\d\\d:\\d\\d:\\d\\d\\.\\d{3} WARN Probe: a warning"), lines.toString());
    }

    @Test
    void ncclDebugSaysHowMuch() throws Exception {
        assertEquals(1, log("VERSION").size());
        assertEquals(3, log("INFO").size());
        assertEquals(3, log("ABORT").size());
        assertEquals(4, log("TRACE").size());
    }

    /** With a finer level, the user receives more messages. */
    @Test
    void traceShowsEachOperation() throws Exception {
        List<String> lines = log(ChildMain.builder(Main.class, "perf", "sendrecv", "--device", "host", "-e", "8", "-n",
                "3", "-w", "2", "-D", "NCCL_DEBUG=TRACE"));
        assertTrue(lines.stream().anyMatch(line -> line.matches(".* TRACE Announcer: rank 1: .*connections")),
                lines.toString());
        lines = log(ChildMain.builder(Main.class, "perf", "all_reduce", "--device", "host", "-e", "8", "-n", "3", "-w",
                "2", "-D", "NCCL_DEBUG=TRACE", "-D", "NCCL_DEBUG_SUBSYS=COLL"));
        assertTrue(lines.stream()
                .anyMatch(line -> line.endsWith(
                        " TRACE Announcer: rank 0: operation 0: all_reduce of 2 float, sum: RING, SIMPLE, 1 channels")),
                lines.toString());
        assertFalse(lines.stream().anyMatch(line -> line.contains(" INFO ")), lines.toString());
    }

    /** Warnings come from all subsystems. Finer messages come from the subsystems in NCCL_DEBUG_SUBSYS. */
    @Test
    void ncclDebugSubsysSaysOfWhat() throws Exception {
        for (var each : Map
                .of("NET", "SocketSender: of net.socket.SocketSender", "REG", "Registrations: of engine.Registrations",
                        "P2P", "P2P: of engine.TransportConnections.P2P")
                .entrySet()) {
            List<String> lines = log("INFO", each.getKey());
            assertEquals(4, lines.stream().filter(line -> line.contains(" WARN ")).count(), lines.toString());
            assertEquals(List.of(" INFO " + each.getValue()),
                    lines.stream()
                            .filter(line -> line.contains(" INFO "))
                            .map(line -> line.substring(line.indexOf(" INFO ")))
                            .toList());
        }
        assertEquals(4, log("WARN", "NET").size());
        assertEquals(0, log("VERSION", "NET").size());
    }

    /** A new package that logs must be assigned to a subsystem. */
    @Test
    void everyPackageThatLogsIsOfASubsystem() throws IOException {
        Path file = Path.of("src/main/resources/log4j2-millrace-cli.properties");
        List<String> loggers = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            if (line.startsWith("logger.") && line.contains(".name = ")) {
                loggers.add(line.substring(line.indexOf('=') + 2));
            } else if (line.startsWith("logger.")) {
                String subsystem = line.substring(line.indexOf("level.", line.indexOf('=')) + 6, line.indexOf(":-"));
                assertTrue(line.startsWith("logger." + subsystem.toLowerCase(Locale.ROOT)), line);
                assertEquals(subsystem, LogSubsystem.valueOf(subsystem).name());
            }
        }
        try (Stream<Path> sources = Files.walk(Path.of("src/main/java"))) {
            for (Path source : (Iterable<Path>) sources.filter(path -> path.toString().endsWith(".java"))::iterator) {
                String name = Path.of("src/main/java").relativize(source).toString().replace('/', '.');
                if (Files.readString(source).contains("LogManager.getLogger(") && !name.contains(".cli.")) {
                    assertTrue(loggers.stream().anyMatch(logger -> name.startsWith(logger + ".")), name);
                }
            }
        }
    }

    @Test
    void aLibraryUserDoesNotGetIt() throws Exception {
        assertFalse(log().toString().contains("Probe: an"), "Log4j's own default instead");
    }

    @Test
    void theUsersOwnConfigurationWins() throws Exception {
        Path file = write("""
                appender.out.type = Console
                appender.out.name = out
                appender.out.layout.type = PatternLayout
                appender.out.layout.pattern = mine: %m%n%ex{0}
                rootLogger.level = INFO
                rootLogger.appenderRef.out.ref = out
                """);
        ProcessBuilder builder = ChildMain.builder(Probe.class, "WARN");
        builder.command().add(1, "-Dlog4j2.configurationFile=" + file);
        assertEquals(List.of("mine: an error", "mine: a warning", "mine: an info"), log(builder));
    }

    private Path write(String text) throws IOException {
        return Files.writeString(directory.resolve("mine.properties"), text);
    }
}
