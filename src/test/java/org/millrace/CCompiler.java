package org.millrace;

import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * The machine's compilers. The C compiler is {@code CC}, or {@code cc} if that variable is not set. A test that needs a
 * missing compiler is skipped.
 */
public final class CCompiler {

    private static final long LIMIT_SECONDS = 120;
    private static final int SHOWN_LINES = 40;

    private CCompiler() {}

    /** Compiles C. The option {@code -o} names the output. */
    public static void c(List<String> arguments) throws IOException, InterruptedException {
        compile("CC", "cc", "gcc libc6-dev", arguments);
    }

    /** Compiles C++. */
    public static void cPlusPlus(List<String> arguments) throws IOException, InterruptedException {
        compile("CXX", "c++", "g++", arguments);
    }

    private static void compile(String variable, String usual, String packages, List<String> arguments)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(System.getenv().getOrDefault(variable, usual)));
        command.addAll(arguments);
        try {
            run(command);
        } catch (IOException absent) {
            abort("no compiler " + command.getFirst() + " (Debian: apt-get install " + packages + "; " + variable
                    + " names another)");
        }
    }

    /** Returns the output of a compiled program, which prints {@code key=value} lines. */
    public static SortedMap<String, String> answers(Path program) throws IOException, InterruptedException {
        SortedMap<String, String> answers = new TreeMap<>();
        for (String line : run(List.of(program.toString())).lines().toList()) {
            int equals = line.indexOf('=');
            answers.put(line.substring(0, equals), line.substring(equals + 1));
        }
        return answers;
    }

    /**
     * Runs a program to its end. If the program fails, the test fails and shows the program's output.
     *
     * @throws IOException if it cannot be started
     */
    public static String run(List<String> command) throws IOException, InterruptedException {
        Path log = Files.createTempFile("compiler", ".log");
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
            boolean ended = process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
            process.destroyForcibly();
            String output = Files.readString(log);
            if (!ended || process.exitValue() != 0) {
                String how = ended ? " ended with exit status " + process.exitValue()
                        : " was still running after " + LIMIT_SECONDS + " s";
                fail(String.join(" ", command) + how + ":\n"
                        + output.lines().limit(SHOWN_LINES).collect(Collectors.joining("\n")));
            }
            return output;
        } finally {
            Files.delete(log);
        }
    }
}
