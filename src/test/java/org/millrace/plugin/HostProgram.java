package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.millrace.CCompiler;
import org.millrace.MillraceException;
import org.millrace.library.BundledLibrary;
import org.millrace.net.plugin.TestNet;
import org.millrace.net.ucx.Ucx;

/** A C program that behaves toward the plugin as libnccl does. It is compiled once and runs in its own process. */
public final class HostProgram {

    private static final Path SOURCES = Path.of("src", "test", "c", "plugin");
    private static final Path BUILT = Path.of("target", "plugin-host");
    private static final Path CLASSES = Path.of("target", "classes");
    /** Jar of the classes under test and their dependencies, because a class archive accepts jars but no folders. */
    private static final Path JAR = BUILT.resolve("classes" + PlantedFault.NAME + ".jar").toAbsolutePath();
    /**
     * Class archive of a takeover. Without the archive, a third of the JVM's start time would be spent on loading
     * classes.
     */
    private static final Path ARCHIVE = BUILT.resolve("classes.jsa").toAbsolutePath();
    /** Targets that this JVM has built, and targets that it found to be up to date. */
    private static final Set<Path> FRESH = new HashSet<>();
    private static final long DEADLINE_SECONDS = 120;
    /**
     * JVM options for short runs. A run lasts a second or two. The optimizing compiler and a collector with its own
     * threads would double this time.
     */
    private static final String QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

    /** Result of a run. */
    public record Outcome(int exit, String output) {

        /** Returns whether the output, without the plugin's log lines, ends with the given words. */
        public boolean endsWith(String words) {
            return output.replaceAll("(?m)^LOG \\d .*\n", "").endsWith(words);
        }

        public String logLine(int level) {
            String prefix = "LOG " + level + " ";
            return output.lines()
                    .filter(line -> line.startsWith(prefix))
                    .map(line -> line.substring(prefix.length()))
                    .findFirst()
                    .orElseThrow(() -> new AssertionError("no line of level " + level + " in:\n" + output));
        }

        /** Returns the output's lines at level WARN. */
        public List<String> warnings() {
            return output.lines().filter(line -> line.startsWith("LOG 2 ")).toList();
        }

        /** Returns the number of lines that contain a text. */
        public long count(String text) {
            return output.lines().filter(line -> line.contains(text)).count();
        }
    }

    private final Path executable;
    private final Map<String, String> environment = new TreeMap<>();
    private final List<String> starter = new ArrayList<>();

    private HostProgram(Path executable) {
        this.executable = executable;
        environment.put("MILLRACE_JAR", JAR.toString());
        environment.put("MILLRACE_JAVA_HOME", System.getProperty("java.home"));
        environment.put("NCCL_SOCKET_IFNAME", "lo");
        environment.put("MILLRACE_JAVA_OPTS", QUICK_START);
    }

    /** Returns the classes under test and their dependencies, without the tests. */
    static String classPath() {
        return String.join(":",
                Arrays.stream(System.getProperty("java.class.path").split(":"))
                        .filter(entry -> entry.contains("log4j-api")
                                || Files.isDirectory(Path.of(entry)) && !entry.endsWith("/test-classes"))
                        .map(entry -> Path.of(entry).toAbsolutePath().toString())
                        .toList());
    }

    /** Returns the shim that the build created. A build without a C compiler created none, and the test is skipped. */
    public static Path library() throws IOException, InterruptedException {
        try {
            return BundledLibrary.file();
        } catch (MillraceException none) {
            CCompiler.c(List.of("--version"));
            throw none;
        }
    }

    /** Returns the path of the compiled program or library. */
    Path path() {
        return executable.toAbsolutePath();
    }

    public static HostProgram compile(String name, String... definitions) throws Exception {
        return compileAlone(name, definitions).with("MILLRACE_JAVA_OPTS", javaOptions());
    }

    /** Returns the options with which {@link #jar} starts quickly. */
    static String javaOptions() throws Exception {
        jar();
        // The archive contains the classes without the planted fault, so a run with a fault does not use it.
        if (!PlantedFault.NAME.isEmpty()) {
            return QUICK_START;
        }
        HostProgram takeover = compileAlone("takeover_host", "-DNET_VERSION=12");
        build(ARCHIVE, CLASSES, fresh -> takeover.archive(fresh));
        return QUICK_START + " -XX:SharedArchiveFile=" + ARCHIVE;
    }

    /**
     * Compiles a host that acts as a release of RCCL. The host has the layouts and the version of the release, and
     * needs HIP.
     *
     * @param wave number of threads in a warp, 64 or 32; 0 for the layouts of NCCL
     */
    public static HostProgram compileRccl(String name, int version, int wave, String... definitions) throws Exception {
        String hip = compileStub("hip.c", "libamdhip64.so.6").toString();
        List<String> all = new ArrayList<>(List.of(definitions));
        all.addAll(List.of("-DNCCL_CODE=" + version, wave == 0 ? "-DNO_RCCL" : "-DRCCL=" + wave, "-DWARN_LEVEL=3",
                "-rdynamic", "-Wl,--no-as-needed", "-L" + hip, "-l:libamdhip64.so.6"));
        return compile(name, all.toArray(String[]::new)).with("LD_LIBRARY_PATH", hip).with("MILLRACE_TAKEOVER", "1");
    }

    /** Returns the jar of the classes under test and their dependencies. */
    static Path jar() throws Exception {
        build(JAR, CLASSES, WholeJar::make);
        return JAR;
    }

    /** Creates a class archive, which contains the classes that a run of this program loads. */
    private void archive(Path archive) throws Exception {
        Path list = archive.resolveSibling("classes.list");
        with("MILLRACE_JAVA_OPTS", QUICK_START + " -XX:DumpLoadedClassList=" + list);
        Outcome outcome = run(library(), "threads", 1, 20, 1, "small");
        assertEquals(0, outcome.exit, outcome.output);
        CCompiler.run(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:+UseSerialGC",
                "-Xshare:dump", "-XX:SharedClassListFile=" + list, "-XX:SharedArchiveFile=" + archive, "-cp",
                JAR.toString()));
    }

    private static HostProgram compileAlone(String name, String... definitions) throws Exception {
        Path executable = BUILT.resolve(name + String.join("", definitions).replaceAll("[^A-Za-z0-9]", "_"));
        List<String> command = new ArrayList<>(
                List.of("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", "headers"));
        command.addAll(List.of(definitions));
        command.addAll(List.of(SOURCES.resolve(name + ".c").toString(), "-ldl"));
        build(executable, SOURCES, compiler(command));
        return new HostProgram(executable);
    }

    private interface Maker {
        void make(Path fresh) throws Exception;
    }

    private static Maker compiler(List<String> arguments) {
        return fresh -> {
            List<String> whole = new ArrayList<>(arguments);
            whole.addAll(List.of("-o", fresh.toString()));
            CCompiler.c(whole);
        };
    }

    /**
     * Builds a target if it is older than its sources. A lock of each target ensures that other JVMs of the build use
     * only complete targets. The sources do not change while a JVM runs tests, so a JVM checks each target once.
     */
    private static void build(Path target, Path sources, Maker maker) throws Exception {
        synchronized (FRESH) {
            if (FRESH.contains(target)) {
                return;
            }
            Files.createDirectories(target.getParent());
            try (FileChannel lock = FileChannel.open(target.resolveSibling(target.getFileName() + ".lock"),
                    StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                lock.lock(); // the lock is released when the file is closed
                // the texts in faults.txt may have changed
                boolean faulty = target.equals(JAR) && !PlantedFault.NAME.isEmpty();
                if (faulty || !isFresh(target, sources)) {
                    Path fresh = target.resolveSibling(target.getFileName() + ".new");
                    maker.make(fresh);
                    Files.move(fresh, target, StandardCopyOption.ATOMIC_MOVE);
                }
            }
            FRESH.add(target);
        }
    }

    /** Returns whether a file is newer than all files in the source folder and in {@code headers}. */
    private static boolean isFresh(Path target, Path sources) throws IOException {
        if (!Files.exists(target)) {
            return false;
        }
        FileTime built = Files.getLastModifiedTime(target);
        for (Path root : List.of(sources, Path.of("headers"))) {
            try (Stream<Path> files = Files.walk(root)) {
                for (Path file : (Iterable<Path>) files::iterator) {
                    if (Files.getLastModifiedTime(file).compareTo(built) >= 0) {
                        return false;
                    }
                }
            }
        }
        return true;
    }

    /** Builds the shim again, with other definitions. */
    public static Path compileShim(String name, String... definitions) throws Exception {
        Path library = BUILT.resolve(name);
        String jni = System.getProperty("java.home") + "/include";
        List<String> command = new ArrayList<>(List.of("-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread",
                "-fvisibility=hidden", "-Wl,-z,nodelete", "-I", "headers", "-I", jni, "-I", jni + "/linux"));
        command.addAll(List.of(definitions));
        Path sources = Path.of("src", "main", "c");
        try (var files = Files.list(sources)) {
            files.map(Path::toString).filter(file -> file.endsWith(".c")).forEach(command::add);
        }
        command.add("-ldl");
        build(library, sources, compiler(command));
        return library;
    }

    /** Builds a stub of a library, and returns its directory. */
    public static Path compileStub(String source, String name) throws Exception {
        Path directory = BUILT.resolve(source.replaceAll("\\W", "_"));
        Path sources = Path.of("src", "test", "c", "stub");
        build(directory.resolve(name), sources, compiler(List.of("-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread",
                "-Wall", "-Werror", "-I", "headers", sources.resolve(source).toString())));
        return directory.toAbsolutePath();
    }

    /**
     * Selects the network: {@code socket}, {@code shm}, {@code auto}, {@code ucx}, or {@code plugin}. The network
     * {@code plugin} behaves as badly as NCCL's rules allow. {@code ucx tcp} is UCX without shared memory. The suffix
     * {@code behind a link} adds an emulated link with losses. Skips the test if UCX is missing.
     */
    public HostProgram withNetwork(String network) {
        String name = network.split(" ")[0];
        Ucx.assumeUsable(name);
        if (network.endsWith(" behind a link")) { // only the link of host x to itself is up
            with("NCCL_HOSTID", "x").with("MILLRACE_LINK", "x-x: rate=10Gbit,delay=200us,jitter=100us,loss=0.1%; down");
        }
        with("MILLRACE_TEST_NET", "recvs=4,late=1,busy=9,unordered,dmabuf");
        return with("MILLRACE_NET", TestNet.setting(name)).with("UCX_TLS", network.equals("ucx tcp") ? "tcp" : null);
    }

    /** Sets a variable of the program's environment. Null removes it. */
    public HostProgram with(String variable, String value) {
        environment.put(variable, value);
        return this;
    }

    /**
     * Starts the program by another command. The program and the program's arguments follow the command's own
     * arguments.
     */
    public HostProgram startedBy(List<String> command) {
        starter.addAll(command);
        return this;
    }

    /** Runs with the JVM's optimizing compiler and its default collector, as users do. */
    public HostProgram withEveryCompiler() {
        return with("MILLRACE_JAVA_OPTS", "-XX:SharedArchiveFile=" + ARCHIVE);
    }

    public Outcome run(Object... arguments) throws Exception {
        return run(builder(arguments));
    }

    /** Starts the program. The calling test must stop the program. */
    public Process start(Path output, Object... arguments) throws IOException {
        return builder(arguments).redirectErrorStream(true).redirectOutput(output.toFile()).start();
    }

    /** Starts the program for a test that reads the program's output. */
    public Process startPiped(Object... arguments) throws IOException {
        return builder(arguments).redirectErrorStream(true).start();
    }

    private ProcessBuilder builder(Object... arguments) {
        List<String> command = new ArrayList<>(starter);
        command.add(executable.toAbsolutePath().toString());
        Arrays.stream(arguments).map(Object::toString).forEach(command::add);
        ProcessBuilder builder = new ProcessBuilder(command);
        environment.forEach((variable, value) -> {
            if (value == null) {
                builder.environment().remove(variable);
            } else {
                builder.environment().put(variable, value);
            }
        });
        return builder;
    }

    private static Outcome run(ProcessBuilder builder) throws IOException, InterruptedException {
        Path output = Files.createTempFile("millrace-host", ".log");
        try {
            Process process = builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
            if (!process.waitFor(DEADLINE_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
                throw new AssertionError(builder.command() + " did not end within " + DEADLINE_SECONDS + " s:\n"
                        + Files.readString(output));
            }
            return new Outcome(process.exitValue(), Files.readString(output));
        } finally {
            Files.delete(output);
        }
    }
}
