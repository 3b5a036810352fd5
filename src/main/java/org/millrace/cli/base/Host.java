package org.millrace.cli.base;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * Facts about this machine from Linux's files in {@code /proc} and {@code /sys}. On other systems the methods return
 * empty results.
 */
public final class Host {

    private Host() {}

    /** Returns the lines of a file of {@code /proc} or {@code /sys}; none if it cannot be read. */
    public static List<String> lines(Path path) {
        try {
            return Files.readAllLines(path);
        } catch (IOException absent) {
            return List.of();
        }
    }

    /** Returns the first line of a file of {@code /proc} or {@code /sys}, stripped; empty if the file has no line. */
    public static Optional<String> line(String path) {
        return lines(Path.of(path)).stream().findFirst().map(String::strip);
    }

    /** Returns the stripped text after a key and a colon, as in {@code /proc/meminfo}; empty if the key is missing. */
    public static Optional<String> field(String path, String key) {
        return lines(Path.of(path)).stream()
                .filter(line -> line.startsWith(key + ":") || line.startsWith(key + "\t"))
                .map(line -> line.substring(line.indexOf(':') + 1).strip())
                .findFirst();
    }

    public static String name() {
        return line("/proc/sys/kernel/hostname").orElse("localhost");
    }

    public static String kernel() {
        return System.getProperty("os.name") + " " + System.getProperty("os.version") + " "
                + System.getProperty("os.arch");
    }
}
