package org.millrace.bench.comparator;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Compiles the comparators with the machine's C compiler. */
public final class CompiledLibrary {

    /** Options of the compiler, which are part of the report. */
    public static final List<String> FLAGS = List.of("-O2", "-falign-loops=64", "-fPIC", "-shared", "-pthread");

    private static final List<String> HEADERS = List.of("bench.h", "frames.h");
    private static final List<String> SOURCES = List.of("access.c", "crossing.c", "ring.c", "idle.c", "frames.c",
            "frame_stream.c", "proxy.c", "work.c", "gpu.c");
    private static final List<String> COMPILERS = List.of("cc", "gcc", "clang");
    private static final int DEADLINE_SECONDS = 60;

    private CompiledLibrary() {}

    /**
     * Compiles into a directory that this JVM deletes when it exits.
     *
     * @return the library, or null without a compiler
     * @throws UncheckedIOException  if files cannot be written
     * @throws IllegalStateException if a compiler exists but fails. The message contains its output
     */
    public static Path compile() {
        try {
            String compiler = compiler();
            return compiler == null ? null : compile(compiler, temporary(Files.createTempDirectory("millrace-bench")));
        } catch (IOException e) {
            throw new UncheckedIOException("the comparators cannot be compiled", e);
        }
    }

    private static Path compile(String compiler, Path directory) throws IOException {
        List<String> command = new ArrayList<>(List.of(compiler));
        command.addAll(FLAGS);
        for (String header : HEADERS) {
            extract(header, directory);
        }
        for (String source : SOURCES) {
            command.add(extract(source, directory).toString());
        }
        Path library = temporary(directory.resolve("libmillrace-bench.so"));
        command.addAll(List.of("-o", library.toString()));
        String output = output(command);
        if (!Files.exists(library)) {
            throw new IllegalStateException(String.join(" ", command) + " failed:\n" + output);
        }
        return library;
    }

    /**
     * The compiler's version.
     *
     * @return its first line; null if unknown
     */
    public static String version() {
        String compiler = compiler();
        return compiler == null ? null
                : compiler + ": " + output(List.of(compiler, "--version")).lines().findFirst().orElse("?");
    }

    private static String compiler() {
        for (String name : COMPILERS) {
            for (String directory : System.getenv().getOrDefault("PATH", "").split(":")) {
                if (!directory.isEmpty() && Files.isExecutable(Path.of(directory, name))) {
                    return name;
                }
            }
        }
        return null;
    }

    private static Path extract(String name, Path directory) throws IOException {
        Path file = temporary(directory.resolve(name));
        try (InputStream source = CompiledLibrary.class.getResourceAsStream("/org/millrace/bench/c/" + name)) {
            if (source == null) {
                throw new IOException("the jar lacks org/millrace/bench/c/" + name + ": build it again");
            }
            Files.write(file, source.readAllBytes());
        }
        return file;
    }

    /**
     * Marks a file or directory for deletion at exit, in reverse order of the calls: a directory precedes its files.
     */
    private static Path temporary(Path path) {
        path.toFile().deleteOnExit();
        return path;
    }

    private static String output(List<String> command) {
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
            String output = new String(process.getInputStream().readAllBytes());
            if (!process.waitFor(DEADLINE_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
            return output;
        } catch (IOException e) {
            return e.toString();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "interrupted";
        }
    }
}
