package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.MillraceException;

class PluginInstallerTest {

    @TempDir
    private Path temporary;

    /** Creates a directory with links to everything in a Java home. */
    private static Path linked(Path java, Path directory) throws IOException {
        Files.createDirectories(directory);
        try (Stream<Path> files = Files.list(java)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Files.createSymbolicLink(directory.resolve(file.getFileName()), file);
            }
        }
        return directory;
    }

    private Path wholeJar() throws Exception {
        return WholeJar.write(temporary.resolve("whole.jar"));
    }

    @Test
    @Tag("slow")
    void whatIsInstalledStartsWithNothingElseSet() throws Exception {
        Path directory = temporary.resolve("with space");
        PluginInstaller installer = new PluginInstaller(wholeJar());
        Path library = installer.install(directory, Path.of(System.getProperty("java.home")));
        assertEquals(library, installer.install(directory, null), "installing again replaces");
        assertEquals("export NCCL_NET_PLUGIN='" + library + "'", PluginInstaller.exportLine(library));
        assertArrayEquals(Files.readAllBytes(HostProgram.library()), Files.readAllBytes(library));
        try (Stream<Path> files = Files.list(directory)) {
            assertEquals(5, files.count(), "nothing but library, links, jar and runtime is left");
        }
        // the link for RCCL's default name, and the link for RCCL with NCCL_NET_PLUGIN=millrace
        for (String name : List.of(library.toString(), "librccl-net.so", "librccl-net-millrace.so")) {
            var outcome = HostProgram.compile("start_host")
                    .with("MILLRACE_JAR", null)
                    .with("MILLRACE_JAVA_HOME", null)
                    .with("JAVA_HOME", null)
                    .with("PATH", "/nowhere")
                    .with("LD_LIBRARY_PATH", directory.toString())
                    .run(name);
            assertTrue(outcome.output().endsWith("RESULT 0\n"), outcome.output());
        }
    }

    @Test
    void theDocumentationHasTheLineThatMakesARuntime() throws Exception {
        String line = RuntimeModules.jlinkLine().replace("DIRECTORY", "");
        assertTrue(Files.readString(Path.of("src", "site", "markdown", "pytorch.md")).contains(line), line);
    }

    @Test
    void aDirectoryOrAJarWithoutItsDependenciesIsRefused() throws Exception {
        assertThrows(MillraceException.class, () -> new PluginInstaller(temporary));
        Path thin = temporary.resolve("thin.jar");
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(thin))) {
            out.putNextEntry(new ZipEntry("org/millrace/Millrace.class"));
        }
        MillraceException refused = assertThrows(MillraceException.class, () -> new PluginInstaller(thin));
        assertTrue(refused.getMessage().contains("target/millrace.jar"), refused.getMessage());
    }

    @Test
    void aJavaThatIsNoneIsRefused() throws Exception {
        PluginInstaller installer = new PluginInstaller(wholeJar());
        assertThrows(MillraceException.class, () -> installer.install(temporary.resolve("d"), temporary));
    }

    /**
     * An archive that includes Java has a directory {@code runtime}. The installer cannot replace this directory by a
     * link, and needs no link.
     */
    @Test
    void aRuntimeThatLiesThereStaysAndIsTheJava() throws Exception {
        Path directory = temporary.resolve("archive");
        Path runtime = linked(Path.of(System.getProperty("java.home")), directory.resolve("runtime"));
        PluginInstaller installer = new PluginInstaller(wholeJar());
        assertEquals(runtime, PluginInstaller.javaFor(directory));
        installer.install(directory, runtime);
        assertTrue(Files.isDirectory(runtime, LinkOption.NOFOLLOW_LINKS));
        MillraceException refused = assertThrows(MillraceException.class,
                () -> installer.install(directory, Path.of(System.getProperty("java.home"))));
        assertTrue(refused.getMessage().contains(runtime + " is a Java of its own"), refused.getMessage());
    }

    @Test
    void aPathThatNcclWouldTakeApartIsRefused() throws Exception {
        PluginInstaller installer = new PluginInstaller(wholeJar());
        MillraceException refused =
                assertThrows(MillraceException.class, () -> installer.install(temporary.resolve("a,b"), null));
        assertTrue(refused.getMessage().contains("comma"), refused.getMessage());
    }
}
