package org.millrace.cli;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Objects;
import picocli.CommandLine.Model.CommandSpec;

/**
 * The command {@code millrace} in a directory that has the jar: {@code bin/millrace}, and where shells and man look for
 * what belongs to a command of {@code bin}, its completion and its page.
 */
final class Launcher {

    private static final String SCRIPT = "millrace.sh";

    private Launcher() {}

    /** Writes all, each in one step; returns them. */
    static List<Path> install(Path home, CommandSpec root) throws IOException {
        try (InputStream script = Objects.requireNonNull(Launcher.class.getResourceAsStream(SCRIPT), SCRIPT)) {
            return List.of(
                    write(home.resolve("bin/millrace"), new String(script.readAllBytes(), StandardCharsets.UTF_8),
                            "rwxr-xr-x"),
                    write(home.resolve("share/bash-completion/completions/millrace"), CompletionCommand.script(root),
                            "rw-r--r--"),
                    write(home.resolve("share/man/man1/millrace.1"), ManCommand.page(root), "rw-r--r--"));
        }
    }

    private static Path write(Path file, String text, String permissions) throws IOException {
        Path fresh = Files.createTempFile(Files.createDirectories(file.getParent()), ".install", "");
        try {
            Files.writeString(fresh, text);
            Files.setPosixFilePermissions(fresh, PosixFilePermissions.fromString(permissions));
            return Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } finally {
            Files.deleteIfExists(fresh);
        }
    }
}
