package org.millrace.cuda;

import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.millrace.CCompiler;

/** Shared libraries that the tests compile, each in its own folder below {@code target}. */
public final class NativeBuild {

    private NativeBuild() {}

    /** Creates a new folder. */
    public static Path directory() {
        try {
            return Files.createTempDirectory(Files.createDirectories(Path.of("target", "stub")), "lib")
                    .toAbsolutePath();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** Compiles a C file into a library. */
    public static Path library(Path target, Path source, String... flags) {
        List<String> arguments =
                new ArrayList<>(List.of("-std=gnu11", "-Wall", "-fPIC", "-shared", "-pthread", "-I", "headers"));
        arguments.addAll(List.of(flags));
        arguments.addAll(List.of("-o", target.toString(), source.toString()));
        try {
            CCompiler.c(arguments);
            return target;
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        } catch (InterruptedException interrupted) {
            return fail("interrupted while " + source + " was compiled", interrupted);
        }
    }

    /** Compiles one of the stand-ins in {@code src/test/c/stub}, under the name of the library that it replaces. */
    public static Path stub(String source, String name, String... flags) {
        return library(directory().resolve(name), Path.of("src/test/c/stub", source), flags);
    }
}
