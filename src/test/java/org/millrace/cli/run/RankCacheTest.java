package org.millrace.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.example.millrace.AllReduce;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchService;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.zip.ZipEntry;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.cli.ChildMain;
import org.millrace.cli.Main;
import org.millrace.plugin.WholeJar;

/** The class cache that {@code millrace run} uses to start Java ranks. */
@Timeout(value = 240, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class RankCacheTest {

    private static final String JAVA = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    private static final String FROM_CACHE = "shared objects file";

    @TempDir
    private static Path temporary;
    private static Path library;
    private static Path program;

    @TempDir
    private Path home;
    @TempDir
    private Path programs;

    @BeforeAll
    static void jars() throws Exception {
        library = WholeJar.write(temporary.resolve("lib.jar"));
        program = temporary.resolve("program.jar");
        String name = AllReduce.class.getName().replace('.', '/') + ".class";
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(program));
                var bytes = AllReduce.class.getClassLoader().getResourceAsStream(name)) {
            out.putNextEntry(new ZipEntry(name));
            bytes.transferTo(out);
        }
    }

    @BeforeEach
    void java25() {
        assumeTrue(Runtime.version().feature() >= 25, "caches take Java 25");
    }

    private static String classPath() {
        String log4j = Arrays.stream(System.getProperty("java.class.path").split(":"))
                .filter(entry -> entry.contains("log4j-core"))
                .findFirst()
                .orElseThrow();
        return program + ":" + library + ":" + log4j;
    }

    /** Returns the file that identifies a command's cache, or null if the command has no cache. */
    private Path file(Map<String, String> more, String... words) {
        Map<String, String> environment = new HashMap<>(Map.of("HOME", home.toString()));
        environment.putAll(more);
        RankCache cache = RankCache.of(List.of(words), environment);
        return cache == null ? null : cache.file;
    }

    private Path file(String... words) {
        return file(Map.of(), words);
    }

    @Test
    void onlyWhatMattersToAJvmMakesAnotherCache() throws Exception {
        Path one = file(JAVA, "-cp", classPath(), "Main");
        assertEquals(home.resolve(".cache/millrace/run"), one.getParent());
        assertEquals(one, file(JAVA, "-Xlog:gc", "-Dx=y", "--class-path=" + classPath(), "Other", "-XX:+UseZGC"));
        assertEquals(one, file(Map.of("CLASSPATH", classPath()), JAVA, "Main"));
        assertEquals(one,
                file(Map.of("PATH", "/nowhere:" + Path.of(JAVA).getParent()), "java", "-cp", classPath(), "M"));
        assertEquals(home.resolve("caches/millrace/run").resolve(one.getFileName()),
                file(Map.of("XDG_CACHE_HOME", home + "/caches"), JAVA, "-cp", classPath(), "Main"));
        assertEquals(one, file(JAVA, "-cp", classPath() + ":" + home + ":after.jar", "Main"));
        Set<Path> others = new HashSet<>(Arrays.asList(one, file(JAVA, "-XX:+UseZGC", "-cp", classPath(), "Main"),
                file(JAVA, "--enable-native-access", "ALL-UNNAMED", "-cp", classPath(), "Main"),
                file(Map.of("JDK_JAVA_OPTIONS", "-Xmx1g"), JAVA, "-cp", classPath(), "Main"),
                file(JAVA, "-cp", library.toString(), "Main"), file(JAVA, "-jar", program.toString())));
        assertEquals(6, others.size(), others.toString());
    }

    @Test
    void aJarThatChangesMakesAnotherCache() throws Exception {
        Path jar = Files.copy(program, home.resolve("a.jar"));
        Path folder = Files.createDirectory(home.resolve("lib"));
        Files.copy(library, folder.resolve("b.jar"));
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().putValue("Manifest-Version", "1.0");
        manifest.getMainAttributes().putValue("Class-Path", "a.jar absent.jar lib/b.jar");
        Path all = home.resolve("all.jar");
        new JarOutputStream(Files.newOutputStream(all), manifest).close();
        Path byWildcard = file(JAVA, "-cp", jar + ":" + folder + "/*", "Main");
        Path byManifest = file(JAVA, "-jar", all.toString());
        Files.setLastModifiedTime(folder.resolve("b.jar"), FileTime.from(Instant.EPOCH));
        assertNotEquals(byWildcard, file(JAVA, "-cp", jar + ":" + folder + "/*", "Main"));
        assertNotEquals(byManifest, file(JAVA, "-jar", all.toString()));
    }

    @Test
    void whereAJvmWouldRefuseOneThereIsNone() throws Exception {
        Path directory = Files.createDirectory(home.resolve("classes"));
        Path old = Files.createDirectories(home.resolve("old/bin"));
        Files.copy(Path.of("/bin/sh"), old.resolve("java"));
        Files.writeString(old.resolveSibling("release"), "JAVA_VERSION=\"24.0.1\"\n");
        assertNotNull(file(JAVA, "-cp", classPath(), "Main"));
        assertNull(file(old.resolve("java").toString(), "-cp", classPath(), "Main"));
        assertNull(file("python3", "-cp", classPath(), "Main"));
        assertNull(file(JAVA, "Main"));
        assertNull(file(JAVA, "-cp", directory + ":" + classPath(), "Main"));
        assertNull(file(JAVA, "-cp", ":" + classPath(), "Main"), "an empty entry is this directory");
        assertNull(file(JAVA, "-cp", classPath(), "-m", "module/Main"));
        for (String option : List.of("@options", "-agentlib:jdwp=x", "-javaagent:a.jar", "-Xshare:off",
                "--module-path=x", "-XX:AOTCache=mine", "-XX:SharedArchiveFile=mine", "-XX:-UseSharedSpaces",
                "-XX:Flags=f")) {
            assertNull(file(JAVA, option, "-cp", classPath(), "Main"), option);
            assertNull(file(Map.of("JAVA_TOOL_OPTIONS", "-Dx=y " + option), JAVA, "-cp", classPath(), "Main"), option);
        }
        assertNull(RankCache.of(List.of(JAVA, "-cp", classPath(), "Main"), Map.of()));
    }

    /**
     * The list of local file systems does not contain the type of {@code /proc}, so {@code /proc} can stand for a
     * network file system.
     */
    @Test
    void outsideALocalFileSystemThereIsNone() {
        assertNull(file(Map.of("XDG_CACHE_HOME", "/proc/self"), JAVA, "-cp", classPath(), "Main"));
        assertNotNull(file(Map.of("XDG_CACHE_HOME", home + "/no/such"), JAVA, "-cp", classPath(), "Main"));
    }

    /**
     * Returns a directory with a program {@code nice} that leaves the priority unchanged. At a low priority, the
     * process that creates a cache could wait for other programs without limit.
     */
    private Path withoutNiceness() throws IOException {
        Path nice = Files.writeString(programs.resolve("nice"), "#!/bin/sh\nshift 2\nexec \"$@\"\n");
        Files.setPosixFilePermissions(nice, PosixFilePermissions.fromString("rwx------"));
        return programs;
    }

    private Process run(Map<String, String> environment, String... words) throws IOException {
        List<String> all = new ArrayList<>(List.of("run", "-n", "2", "-D", "MILLRACE_DEVICE=host"));
        all.addAll(List.of(words));
        ProcessBuilder builder = ChildMain.builder(Main.class, all.toArray(String[]::new)).redirectErrorStream(true);
        builder.environment().keySet().removeAll(Set.of("XDG_CACHE_HOME", "HOME"));
        builder.environment().putAll(environment);
        builder.environment().merge("PATH", withoutNiceness().toString(), (path, first) -> first + ":" + path);
        return builder.start();
    }

    /**
     * Runs the example. Returns the source of the class Millrace in a rank, as reported in the JVM's log of loaded
     * classes.
     */
    private String sourceOfClasses(Map<String, String> environment, String... options) throws Exception {
        Path log = home.resolve("classes.log");
        List<String> words = new ArrayList<>(List.of(options));
        words.addAll(List.of("--", JAVA, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "--enable-native-access=ALL-UNNAMED", "-Xlog:class+load:file=" + log + ".%p", "-cp",
                classPath() + ":" + home, AllReduce.class.getName()));
        Process run = run(environment, words.toArray(String[]::new));
        Set<String> lines = new TreeSet<>(run.inputReader(StandardCharsets.UTF_8).lines().toList());
        assertEquals(0, run.waitFor(), lines.toString());
        assertEquals(Set.of("[rank 0] rank 0 on emulated device 0: element 7 is 15.0",
                "[rank 1] rank 1 on emulated device 1: element 7 is 15.0"), lines);
        String source = null;
        try (DirectoryStream<Path> logs = Files.newDirectoryStream(home, "classes.log.*")) {
            for (Path each : logs) {
                source = Files.readAllLines(each)
                        .stream()
                        .filter(line -> line.contains(" org.millrace.Millrace source: "))
                        .map(line -> line.substring(line.indexOf("source: ") + "source: ".length()))
                        .findFirst()
                        .orElseThrow();
                Files.delete(each);
            }
        }
        return source;
    }

    /** Waits until the process that creates a cache has completed the cache. */
    private static void awaitCache(Path directory) throws Exception {
        try (WatchService watch = directory.getFileSystem().newWatchService()) {
            directory.register(watch, StandardWatchEventKinds.ENTRY_CREATE, StandardWatchEventKinds.ENTRY_MODIFY,
                    StandardWatchEventKinds.ENTRY_DELETE);
            while (!isMade(directory)) {
                watch.take().reset();
            }
        }
    }

    private static boolean isMade(Path directory) throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory)) {
            List<Path> found = new ArrayList<>();
            files.forEach(found::add);
            return found.size() == 1 && Files.size(found.getFirst()) > 0;
        }
    }

    @Test
    void theSecondRunStartsWithTheCacheOfTheFirst() throws Exception {
        Map<String, String> environment = Map.of("HOME", home.toString());
        assertEquals("file:" + library, sourceOfClasses(environment, "--no-cache"));
        assertFalse(Files.exists(home.resolve(".cache")));
        assertEquals("file:" + library, sourceOfClasses(environment));
        Path directory = home.resolve(".cache/millrace/run");
        awaitCache(directory);
        assertEquals(FROM_CACHE, sourceOfClasses(environment));
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory)) {
            Files.writeString(files.iterator().next(), "this is no cache");
        }
        assertEquals("file:" + library, sourceOfClasses(environment));
    }

    @Test
    void withoutAPlaceForItNoneIsMade() throws Exception {
        Path none = Files.createFile(home.resolve("none"));
        assertEquals("file:" + library, sourceOfClasses(Map.of("XDG_CACHE_HOME", none.toString())));
    }

    @Test
    void afterAFailureNoneIsMade() throws Exception {
        Process run = run(Map.of("HOME", home.toString()), "--", JAVA, "-cp", classPath(), "no.such.Class");
        run.inputReader().lines().forEach(line -> {});
        assertNotEquals(0, run.waitFor());
        assertFalse(Files.exists(home.resolve(".cache")));
    }

    /** Only the eight most recently used caches are kept. Only one attempt is made to create a cache. */
    @Test
    void oldCachesGo() throws Exception {
        Path one = file(JAVA, "-cp", program.toString(), "Main");
        Files.createDirectories(one.getParent());
        for (int i = 0; i < 9; i++) {
            Path old = Files.createFile(one.resolveSibling("old" + i));
            Files.setLastModifiedTime(old, FileTime.from(Instant.EPOCH.plusSeconds(i)));
        }
        Files.createFile(one);
        RankCache.of(List.of(JAVA, "-cp", program.toString(), "Main"), Map.of("HOME", home.toString()))
                .makeInBackground();
        assertTrue(Files.exists(one.resolveSibling("old0")), "nothing is begun");
        // This attempt to create the cache fails, because it has no training run.
        RankCache.main(new String[] {one.toString(), JAVA, "-cp", program.toString()});
        assertEquals(0, Files.size(one));
        assertFalse(Files.exists(one.resolveSibling("old1")));
        assertTrue(Files.exists(one.resolveSibling("old2")));
    }
}
