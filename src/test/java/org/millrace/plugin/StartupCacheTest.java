package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.foreign.CFunction;

/** All these tests share one cache, because creating it takes seconds. */
@Tag("slow")
class StartupCacheTest {

    private static final Path JAVA = Path.of(System.getProperty("java.home"));

    @TempDir
    private static Path temporary;

    private static Path library;
    private static StartupCache.Outcome made;

    @BeforeAll
    static void install() throws Exception {
        library = new PluginInstaller(WholeJar.write(temporary.resolve("whole.jar")))
                .install(temporary.resolve("installed"), JAVA);
        made = StartupCache.make(library, JAVA);
    }

    private record Start(List<String> classes, String output) {
    }

    /** Starts the plugin, with a log of the classes that the JVM loads. */
    private static Start start(Path library, Path java, String options) throws Exception {
        return start(library, java, options, null, null);
    }

    private static Start start(Path library, Path java, String options, String ofEnvironment, String preloaded)
            throws Exception {
        Path log = Files.createTempFile(temporary, "classes", ".log");
        var outcome = HostProgram.compile("start_host")
                .with("MILLRACE_JAR", null)
                .with("MILLRACE_JAVA_HOME", java.toString())
                .with("JAVA_TOOL_OPTIONS", ofEnvironment)
                .with("LD_PRELOAD", preloaded)
                .with("MILLRACE_JAVA_OPTS", "-Xlog:class+load:file=" + log + " " + options)
                .run(library);
        assertTrue(outcome.output().endsWith("RESULT 0\n"), outcome.output());
        assertFalse(outcome.output().contains("[warning]") || outcome.output().contains("[error]"), outcome.output());
        return new Start(Files.readAllLines(log), outcome.output());
    }

    /**
     * Starts the plugin. Returns the file from which the JVM loaded the plugin's first class, according to the JVM's
     * log.
     */
    private static String sourceOfClasses(Path library, Path java, String options) throws Exception {
        return sourceOfClasses(start(library, java, options));
    }

    private static String sourceOfClasses(Start start) {
        String source = start.classes()
                .stream()
                .filter(line -> line.contains(PluginEntry.class.getName() + " source: "))
                .map(line -> line.substring(line.indexOf("source: ") + "source: ".length()))
                .findFirst()
                .orElseThrow();
        assertEquals(source.equals("shared objects file"), start.output().contains("started with its cache"),
                start.output());
        return source;
    }

    private static String jar(Path library) {
        return "file:" + library.resolveSibling("millrace.jar");
    }

    private static void assumeMade() {
        assumeTrue(Runtime.version().feature() >= 25, "caches take Java 25");
        assertTrue(made.made(), made.report());
    }

    @Test
    void theClassesComeOutOfTheCache() throws Exception {
        assumeMade();
        assertEquals("shared objects file", sourceOfClasses(library, JAVA, ""));
    }

    /**
     * Another machine can truncate a file on a network file system. A process that has mapped that file then dies of
     * SIGBUS.
     */
    @Test
    void aCacheOnANetworkFileSystemIsMappedAsACopyInMemory() throws Exception {
        assumeMade();
        Start local = start(library, JAVA, "");
        assertTrue(local.output().contains("MAPPED " + cache(library)), local.output());
        String stub = "libnetworkfiles.so";
        Start remote = start(library, JAVA, "", null,
                HostProgram.compileStub("network_files.c", stub).resolve(stub).toString());
        assertTrue(remote.output().contains("MAPPED /memfd:millrace.aot"), remote.output());
        assertFalse(remote.output().contains("MAPPED " + cache(library)), remote.output());
        assertEquals("shared objects file", sourceOfClasses(remote));
    }

    /**
     * Each kind of native function takes ten milliseconds or more to link, and no cache can contain the linked code.
     * See {@link CFunction}.
     */
    @Test
    void functionsInCAreLinkedOnce() throws Exception {
        assumeMade();
        List<String> shapes = start(library, JAVA, "").classes()
                .stream()
                .filter(line -> line.contains("jdk.internal.foreign.abi.DowncallStub/"))
                .toList();
        assertTrue(!shapes.isEmpty() && shapes.size() <= 2, "with errno and without: " + shapes);
    }

    @Test
    void whereTheUserChoosesAnArchiveTheCacheIsLeftAlone() throws Exception {
        assumeMade();
        assertEquals(jar(library), sourceOfClasses(library, JAVA, "-Xshare:auto"));
    }

    @Test
    void optionsOfTheEnvironmentGoWithTheCacheOrWithout() throws Exception {
        assumeMade();
        assertEquals(jar(library), sourceOfClasses(start(library, JAVA, "", "-Xshare:off", null)));
        assertEquals("shared objects file", sourceOfClasses(start(library, JAVA, "", "-XX:+UseG1GC", null)));
    }

    @Test
    void aCacheThatDoesNotFitTheUsersOptionsIsLeftAlone() throws Exception {
        assumeMade();
        assertEquals(jar(library), sourceOfClasses(library, JAVA, "-XX:-UseSerialGC -XX:+UseZGC"));
    }

    /** Installs the plugin with an invalid file in place of its cache. */
    private static Path spoiled(String directory, Path java) throws Exception {
        Path other = new PluginInstaller(temporary.resolve("whole.jar")).install(temporary.resolve(directory), java);
        Files.writeString(other.resolveSibling(cache(library).getFileName()), "this is no cache");
        return other;
    }

    private static Path cache(Path library) throws IOException {
        try (var files = Files.list(library.getParent())) {
            return files.filter(StartupCache::isCache).findFirst().orElseThrow();
        }
    }

    @Test
    void whatIsNoCacheIsLeftAlone() throws Exception {
        assumeMade();
        Path other = spoiled("spoiled", JAVA);
        assertEquals(jar(other), sourceOfClasses(other, JAVA, ""));
    }

    /** A JVM would accept a cache that was created from another jar, and run the classes of that other jar. */
    @Test
    void theCacheOfAnotherJarIsLeftAlone() throws Exception {
        assumeMade();
        Path jar = Files.copy(temporary.resolve("whole.jar"), temporary.resolve("next.jar"));
        try (var zip = FileSystems.newFileSystem(jar)) {
            Files.writeString(zip.getPath("next"), "one more file");
        }
        Path other = new PluginInstaller(jar).install(temporary.resolve("next"), JAVA);
        Files.copy(cache(library), other.resolveSibling(cache(library).getFileName()));
        assertEquals(jar(other), sourceOfClasses(other, JAVA, ""));
    }

    /** A JVM of an older version would not start with a cache of this version. */
    @Test
    void anOlderJavaIsNotGivenTheCache() throws Exception {
        Path old = Files.createDirectories(temporary.resolve("old"));
        Files.createSymbolicLink(old.resolve("lib"), JAVA.resolve("lib"));
        Files.writeString(old.resolve("release"), "JAVA_VERSION=\"24.0.1\"\n");
        assumeMade();
        Path other = spoiled("old-plugin", old);
        assertEquals(jar(other), sourceOfClasses(other, old, ""));
        assertEquals("no cache, so the first operations of a process are slower: there is no " + old.resolve("bin/java")
                + " to make it with", StartupCache.make(other, old).report());
        Files.createSymbolicLink(old.resolve("bin"), JAVA.resolve("bin"));
        assertEquals("no cache, so the first operations of a process are slower: it takes Java 25 or newer, and " + old
                + " is 24", StartupCache.make(other, old).report());
    }

    @Test
    void installingAgainTakesTheOldCacheAway() throws Exception {
        assumeMade();
        Path again = spoiled("again", JAVA);
        new PluginInstaller(temporary.resolve("whole.jar")).install(again.getParent(), JAVA);
        assertFalse(Files.exists(again.resolveSibling(cache(library).getFileName())));
    }
}
