package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The archive for hosts without Java: {@code src/main/archive}. */
class ArchiveTest {

    private static final String SHELL = ". \"$0\" || exit 7; printf %s \"$NCCL_NET_PLUGIN\"";

    @TempDir
    private Path temporary;

    private record Outcome(int exit, String output) {
    }

    private static Outcome run(Path directory, String... command) throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(command).directory(directory.toFile()).redirectErrorStream(true);
        builder.environment().keySet().removeIf(name -> name.contains("JAVA") || name.startsWith("JDK_"));
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes());
        return new Outcome(process.waitFor(), output);
    }

    private Path unpacked(String name) throws IOException {
        Path directory = Files.createDirectories(temporary.resolve(name));
        Files.createFile(directory.resolve("libnccl-net-millrace.so"));
        return Files.copy(Path.of("src/main/archive/env.sh"), directory.resolve("env.sh"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"archive", "with a space and $HOME"})
    void theFileToSourceNamesThePlugin(String name) throws Exception {
        Path file = unpacked(name);
        Path expected = file.toRealPath().resolveSibling("libnccl-net-millrace.so");
        assertEquals(new Outcome(0, expected.toString()), run(temporary, "bash", "-euc", SHELL, name + "/env.sh"));
        assertEquals(new Outcome(0, expected.toString()), run(file.getParent(), "sh", "-euc", SHELL, "./env.sh"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"a:b", "a,b"})
    void aFolderThatCannotDoIsRefused(String name) throws Exception {
        Outcome outcome = run(temporary, "bash", "-c", SHELL, unpacked(name).toString());
        assertEquals(7, outcome.exit());
        assertTrue(outcome.output().contains(name + "/libnccl-net-millrace.so: no Java runs in a folder with a colon"),
                outcome.output());
    }

    /** As on a user's host, the archive was moved after it was unpacked, and no other Java is installed. */
    @Test
    @Tag("slow")
    @Tag("nightly")
    void itsJavaRunsThePluginWhereverItLies() throws Exception {
        Path home = Path.of(System.getProperty("java.home"));
        assumeTrue(Files.isExecutable(home.resolve("bin/jlink")), "this Java has no jlink");
        HostProgram host = HostProgram.compile("start_host");
        Path jar = WholeJar.write(temporary.resolve("whole.jar"));
        Path archive = temporary.resolve("millrace.tar.gz");
        Outcome made = run(Path.of("."), home.resolve("bin/java").toString(), "-cp", jar.toString(),
                "src/main/archive/Archive.java", jar.toString(), archive.toString(), "2026-01-01T00:00:00Z");
        assertEquals(0, made.exit(), made.output());
        Path elsewhere = Files.createDirectory(temporary.resolve("elsewhere"));
        assertEquals(new Outcome(0, ""), run(elsewhere, "tar", "xzf", archive.toString()));
        Path moved = Files.move(elsewhere.resolve("millrace"), temporary.resolve("moved"));
        try (Stream<Path> files = Files.walk(moved)) {
            for (Path link : files.filter(Files::isSymbolicLink).toList()) {
                assertFalse(Files.readSymbolicLink(link).isAbsolute(), link.toString());
            }
        }
        Path link = Files.createSymbolicLink(temporary.resolve("a link"), moved.resolve("bin/millrace"));
        for (Path command : List.of(moved.resolve("bin/millrace"), link)) {
            Outcome help = run(temporary, command.toString(), "help", "compare");
            assertEquals(0, help.exit(), help.output());
            assertTrue(help.output().contains("Usage: millrace compare"), help.output());
        }
        Outcome sourced =
                run(temporary, "bash", "-euc", ". moved/env.sh; . moved/env.sh; type -P millrace; printf %s \"$PATH\"");
        assertTrue(sourced.output().startsWith(moved.toRealPath() + "/bin/millrace\n"), sourced.output());
        assertEquals(2, sourced.output().split(moved.toRealPath() + "/bin", -1).length - 1, sourced.output());
        assertTrue(Files.readString(moved.resolve("share/man/man1/millrace.1")).startsWith(".TH MILLRACE 1"));
        assertTrue(Files.readString(moved.resolve("share/bash-completion/completions/millrace"))
                .contains("complete -F _complete_millrace"));
        Path log = temporary.resolve("log");
        for (String variable : List.of("MILLRACE_JAVA_HOME", "MILLRACE_JAR", "JAVA_HOME")) {
            host.with(variable, null);
        }
        var outcome = host.with("PATH", "/nowhere")
                .with("MILLRACE_JAVA_OPTS", "-XX:TieredStopAtLevel=1 -Xlog:class+path=info:file=" + log)
                .run(moved.resolve("libnccl-net-millrace.so"));
        assertTrue(outcome.output().endsWith("RESULT 0\n"), outcome.output());
        assertTrue(Files.readString(log).contains(moved.toRealPath() + "/runtime/lib/modules"), Files.readString(log));
    }
}
