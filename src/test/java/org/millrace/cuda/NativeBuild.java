package org.millrace.cuda;

import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Shared libraries that the tests compile, each in a folder of its own below {@code target}. */
public final class NativeBuild {

    private static final long LIMIT_SECONDS = 120;

    private NativeBuild() {}

    /** A new folder. */
    public static Path directory() {
        try {
            return Files.createTempDirectory(Files.createDirectories(Path.of("target", "stub")), "lib")
                    .toAbsolutePath();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** Compiles a C file into a library; fails the test with the compiler's words if it cannot. */
    public static Path library(Path target, Path source, String... flags) {
        List<String> command = new ArrayList<>(List.of(System.getenv().getOrDefault("CC", "cc"), "-std=gnu11", "-Wall",
                "-fPIC", "-shared", "-pthread", "-I", "headers"));
        command.addAll(List.of(flags));
        command.addAll(List.of("-o", target.toString(), source.toString()));
        Path log = target.resolveSibling("cc.log");
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
            if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                fail(String.join(" ", command) + " was still running after " + LIMIT_SECONDS + " s");
            }
            if (process.exitValue() != 0) {
                fail(String.join(" ", command) + " failed:\n" + Files.readString(log));
            }
            return target;
        } catch (IOException noCompiler) {
            return fail("this test needs a C compiler (Debian: apt-get install gcc; CC names another): "
                    + noCompiler.getMessage());
        } catch (InterruptedException interrupted) {
            return fail("interrupted while " + command.getFirst() + " ran", interrupted);
        }
    }

    /** One of the stand-ins in {@code src/test/c/stub}, under the name of the library that it stands in for. */
    public static Path stub(String source, String name, String... flags) {
        return library(directory().resolve(name), Path.of("src/test/c/stub", source), flags);
    }
}
