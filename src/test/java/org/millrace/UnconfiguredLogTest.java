package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Warnings of Millrace with and without log4j-core, and with and without a configuration of Log4j. Each case runs in a
 * separate process.
 */
@Tag("slow")
class UnconfiguredLogTest {

    private static final String WARNING = "a warning of Millrace";

    @TempDir
    Path directory;

    /** The program. */
    static final class Program {

        public static void main(String[] args) {
            Millrace.local(1, communicator -> {
                LogManager.getLogger(Millrace.class).warn(WARNING);
            });
        }
    }

    /** Runs the program with some of Log4j's jars. Returns the number of warnings on standard error. */
    private int warnings(List<String> log4j, String... options) throws Exception {
        List<String> command =
                new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED"));
        command.addAll(List.of(options));
        List<String> path = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(each -> !each.contains("log4j-") || log4j.stream().anyMatch(each::contains))
                .toList();
        command.addAll(List.of("-cp", String.join(File.pathSeparator, path), Program.class.getName()));
        Path out = directory.resolve("out");
        Path err = directory.resolve("err");
        Process process = new ProcessBuilder(command).redirectOutput(out.toFile()).redirectError(err.toFile()).start();
        assertEquals(0, process.waitFor(), Files.readString(err));
        assertFalse(Files.readString(out).contains(WARNING));
        return Files.readString(err, StandardCharsets.UTF_8).split(WARNING, -1).length - 1;
    }

    @Test
    void log4jCoreWithoutAConfigurationShowsAWarningOnce() throws Exception {
        assertEquals(1, warnings(List.of("log4j-api", "log4j-core")));
    }

    @Test
    void log4jApiAloneShowsAWarningOnce() throws Exception {
        assertEquals(1, warnings(List.of("log4j-api")));
    }

    @Test
    void aConfigurationOfTheProgramDecides() throws Exception {
        Path configuration = Files.writeString(directory.resolve("log4j2.properties"), "rootLogger.level = ERROR\n");
        List<String> both = List.of("log4j-api", "log4j-core");
        assertEquals(0, warnings(both, "-Dlog4j2.configurationFile=" + configuration));
        assertEquals(0, warnings(both, "-Dorg.apache.logging.log4j.level=FATAL"));
        assertEquals(0, warnings(List.of("log4j-api"), "-Dorg.apache.logging.log4j.simplelog.level=ERROR"));
    }
}
