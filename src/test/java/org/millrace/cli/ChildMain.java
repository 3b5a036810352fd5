package org.millrace.cli;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Starts a main class of the test class path in a separate process. */
public final class ChildMain {

    /** Options for JVMs that live for a second or two: fast compilation, and no separate collector threads. */
    static final String BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

    private ChildMain() {}

    static Process start(Class<?> main, String... arguments) throws IOException {
        return builder(main, arguments).start();
    }

    public static ProcessBuilder builder(Class<?> main, String... arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of(BRIEF.split(" "))); // the child's own child processes inherit the options
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "--class-path",
                System.getProperty("java.class.path"), main.getName()));
        command.addAll(Arrays.asList(arguments));
        return new ProcessBuilder(command);
    }

    /** Reads until a line contains a text, and returns the line. Returns null if the stream ends before such a line. */
    public static String readUntil(BufferedReader reader, String text) throws IOException {
        String line = reader.readLine();
        while (line != null && !line.contains(text)) {
            line = reader.readLine();
        }
        return line;
    }
}
