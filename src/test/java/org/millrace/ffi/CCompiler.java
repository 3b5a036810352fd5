package org.millrace.ffi;

import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** The machine's C or C++ compiler, and programs that it made. */
final class CCompiler {
    private static final long LIMIT_SECONDS = 120;
    private static final int SHOWN_LINES = 40;

    private final List<String> command;
    private final String suffix;
    private final Path directory;

    private CCompiler(List<String> command, String suffix, Path directory) {
        this.command = command;
        this.suffix = suffix;
        this.directory = directory;
    }

    static CCompiler c(Path directory) {
        return new CCompiler(List.of(System.getenv().getOrDefault("CC", "cc"), "-std=gnu11", "-w"), ".c", directory);
    }

    static CCompiler cPlusPlus(Path directory, List<String> flags) {
        List<String> command =
                new ArrayList<>(List.of(System.getenv().getOrDefault("CXX", "c++"), "-std=gnu++17", "-w"));
        command.addAll(flags);
        return new CCompiler(command, ".cc", directory);
    }

    /** Fails with the compiler's messages if the source does not compile. */
    Path compile(String name, String source, List<Path> includes) throws IOException, InterruptedException {
        Path file = Files.writeString(directory.resolve(name + suffix), source);
        Path program = directory.resolve(name);
        List<String> line = new ArrayList<>(command);
        includes.forEach(include -> line.add("-I" + include));
        line.addAll(List.of("-o", program.toString(), file.toString()));
        run(line);
        return program;
    }

    /** Runs a program that prints {@code key=value} lines. */
    Map<String, String> answers(Path program) throws IOException, InterruptedException {
        Map<String, String> answers = new TreeMap<>();
        for (String line : run(List.of(program.toString())).lines().toList()) {
            int equals = line.indexOf('=');
            answers.put(line.substring(0, equals), line.substring(equals + 1));
        }
        return answers;
    }

    private String run(List<String> line) throws IOException, InterruptedException {
        Path log = directory.resolve("log");
        Process process;
        try {
            process = new ProcessBuilder(line).redirectErrorStream(true).redirectOutput(log.toFile()).start();
        } catch (IOException noSuchProgram) {
            return fail("cannot start " + line.getFirst() + ": this test needs a C compiler. Install gcc or clang"
                    + " (Debian: apt-get install gcc g++), or name yours in CC and CXX", noSuchProgram);
        }
        if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            return fail(String.join(" ", line) + " was still running after " + LIMIT_SECONDS + " s");
        }
        String output = Files.readString(log);
        if (process.exitValue() != 0) {
            return fail(String.join(" ", line) + " ended with exit status " + process.exitValue() + ":\n"
                    + output.lines().limit(SHOWN_LINES).collect(Collectors.joining("\n")));
        }
        return output;
    }
}
