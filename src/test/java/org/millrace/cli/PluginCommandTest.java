package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.plugin.WholeJar;

class PluginCommandTest {

    private static final String JAVA = System.getProperty("java.home");

    @TempDir
    private Path temporary;

    private static String size(Path file) throws IOException {
        return file + " (" + Files.size(file) + " bytes)";
    }

    private static String link(Path directory, String name) {
        return directory.resolve(name) + " -> libnccl-net-millrace.so";
    }

    @Test
    void whatWasWrittenAndTheExportLineArePrinted() throws Exception {
        Path directory = temporary.resolve("new").resolve("it's here");
        Path jar = WholeJar.write(temporary.resolve("whole.jar"));
        for (int time = 0; time < 2; time++) {
            Run run = Run.of("plugin", "install", directory.toString(), "--jar", jar.toString(), "--no-cache");
            assertEquals(0, run.status(), run.toString());
            assertEquals("", run.err(), run.toString());
            Path library = directory.resolve("libnccl-net-millrace.so");
            assertEquals(
                    List.of("# " + size(library), "# " + link(directory, "librccl-net-millrace.so"),
                            "# " + link(directory, "librccl-net.so"), "# " + size(directory.resolve("millrace.jar")),
                            "# " + directory.resolve("runtime") + " -> " + Path.of(JAVA).toRealPath(),
                            "# " + size(directory.resolve("bin/millrace")),
                            "# " + size(directory.resolve("share/bash-completion/completions/millrace")),
                            "# " + size(directory.resolve("share/man/man1/millrace.1")),
                            "# In the shell that starts an NCCL program:",
                            "export NCCL_NET_PLUGIN='" + library.toString().replace("'", "'\\''") + "'"),
                    run.out().lines().toList());
        }
    }

    /** Other files in the directory do not belong to Millrace. Millrace must not list or change these files. */
    @Test
    @Tag("slow")
    void whatElseLiesThereStays() throws Exception {
        Path other = Files.writeString(temporary.resolve("notes.txt"), "mine");
        Run run = Run.of("plugin", "install", temporary.toString(), "--jar",
                WholeJar.write(temporary.resolve("other.jar")).toString());
        assertEquals(0, run.status(), run.toString());
        assertTrue(!run.out().contains("notes.txt") && !run.out().contains("other.jar"), run.toString());
        assertEquals("mine", Files.readString(other));
        assertEquals(1, run.out().lines().filter(line -> line.contains(".aot (") || line.contains("no cache")).count(),
                run.toString());
    }

    @Test
    void whatCannotBeDoneIsExplained() throws Exception {
        Run fromClasses = Run.of("plugin", "install", temporary.toString());
        assertEquals(1, fromClasses.status(), fromClasses.toString());
        assertTrue(fromClasses.err().contains("target/millrace.jar"), fromClasses.toString());
        String jar = WholeJar.write(temporary.resolve("whole.jar")).toString();
        Run noJava = Run.of("plugin", "install", temporary.toString(), "--jar", jar, "--java", temporary.toString());
        assertEquals(1, noJava.status(), noJava.toString());
        assertTrue(noJava.err().contains("is not the home of a Java"), noJava.toString());
        Path file = Files.writeString(temporary.resolve("file"), "");
        Run noDirectory = Run.of("plugin", "install", file.toString(), "--jar", jar);
        assertEquals(1, noDirectory.status(), noDirectory.toString());
        assertTrue(
                noDirectory.err()
                        .startsWith("millrace: cannot install the plugin into " + file + ": it is no directory"),
                noDirectory.toString());
        // the directory's name is empty, as if it came from an unset shell variable
        Run unnamed = Run.of("plugin", "install", "", "--jar", jar);
        assertEquals(1, unnamed.status(), unnamed.toString());
        assertTrue(unnamed.err().contains("the name of the directory to install into is empty"), unnamed.toString());
    }
}
