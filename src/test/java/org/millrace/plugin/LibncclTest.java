package org.millrace.plugin;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.CCompiler;
import org.millrace.device.LaunchedKernel;
import org.millrace.library.LibraryDirectories;
import org.millrace.nccl.NcclLibrary;
import org.millrace.net.ucx.Ucx;
import org.opentest4j.TestAbortedException;

/**
 * An unmodified libnccl on a machine without a GPU, with its own proxy and with the plugin. CUDA and NCCL's kernels run
 * on CPU threads; see {@code src/test/c/libnccl}. The property {@code millrace.nccl} names the library. By default, the
 * library of an installed Python package is used.
 */
@Tag("nccl")
class LibncclTest {

    private static final String VERSION = "2.30.7";
    private static final Path SOURCES = Path.of("src", "test", "c", "libnccl");
    private static final Path BUILT = Path.of("target", "libnccl");
    private static final String ALL_TYPES = "0,1,2,3,4,5,6,7,8,9,10,11";
    private static final String ALL_OPERATORS = "0,1,2,3,4,5";
    private static final String FLOATS = "7";
    private static final String SUM = "0";
    private static final Path RANKS = BUILT.resolve("ranks");
    private static final Path NVML = BUILT.resolve("libnvidia-ml.so.1").toAbsolutePath();
    private static final Path CUDA = BUILT.resolve("libcuda-on-cpu.so").toAbsolutePath();
    /** Collectives that the emulated device runs. */
    private static final String IN_JAVA =
            "allReduce reduceScatter reduce allGather broadcast sendRecv allToAll gather scatter";
    private static final Set<String> POINT_TO_POINT = Set.of("sendRecv", "allToAll", "gather", "scatter");
    /** Small buffers, so that few elements fill many slots. */
    private static final String SMALL = "NCCL_BUFFSIZE=262144 NCCL_LL128_BUFFSIZE=614400";
    /**
     * A small limit of a kernel's arguments, in bytes, so that most work is in NCCL's FIFO or in persistent memory. The
     * arguments have space for eight batches. With more than eight channels, NCCL never finishes planning an operation.
     */
    private static final String FEW_ARGUMENTS = "NCCL_WORK_ARGS_BYTES=160 NCCL_MAX_NCHANNELS=4";
    /**
     * Seed of the first case of random operations, and number of rounds of random operations. Failures print the seed.
     */
    private static final long SEED = Long.getLong("millrace.nccl.seed", 1);
    private static final int ROUNDS = Integer.getInteger("millrace.nccl.rounds", 25);
    /** Events that must occur in 25 rounds of random operations, named as in {@code ranks.cpp}. */
    private static final Set<String> DRAWN = Set.of("graph", "split", "shrink", "allReduce", "reduceScatter", "reduce",
            "allGather", "broadcast", "sendRecv", "allToAll", "gather", "scatter", "allGatherV", "allToAllV", "type0",
            "type1", "type2", "type3", "type4", "type5", "type6", "type7", "type8", "type9", "type10", "type11");
    private static final long DEADLINE_SECONDS = 180 + ROUNDS;
    private static final Map<String, String> OWN = Map.of("NCCL_NET_PLUGIN", "none", "NCCL_DEBUG", "WARN");
    /** Last line that a rank prints. */
    private static final Pattern TOTALS =
            Pattern.compile("rank \\d+: (\\d+) operations, (\\d+) elements, (\\d+) wrong");
    /** Line that the interpreter prints when a rank has ended: {@code COLLECTIVE/ALGORITHM/PROTOCOL=COUNT ...}. */
    private static final Pattern KERNELS = Pattern.compile("kernels: (.*)");
    private static final long TERMINATION_SECONDS = 10;
    private static final Pattern PRINTED =
            Pattern.compile("MILLRACE_(NET|TAKEOVER|TLS)|NCCL_(PROTO|ALGO|MAX_CTAS|CUMEM_ENABLE)");
    private static Path nccl;
    private static String javaOptions;

    /** Exit status and output of a run of all ranks. */
    private record Outcome(int exit, String output) {

        long count(String text) {
            return output.lines().filter(line -> line.contains(text)).count();
        }

        /**
         * Returns a sum over all ranks: the number of operations (group 1), of elements (2) or of wrong elements (3).
         */
        long sum(int group) {
            return TOTALS.matcher(output).results().mapToLong(rank -> Long.parseLong(rank.group(group))).sum();
        }

        /**
         * Asserts that the output contains no warning. Ignores a warning of NCCL's InfiniBand wrapper, which libnccl
         * calls even with NCCL_IB_DISABLE=1.
         */
        void assertNoWarning() {
            assertEquals(List.of(),
                    output.lines()
                            .filter(line -> line.contains("NCCL WARN") && !line.contains("(wrap_ibv_alloc_pd)"))
                            .toList());
        }

        /** Asserts that each rank has compared the given number of operations, and that all elements were right. */
        void assertRight(int ranks, int operations) {
            assertEquals(0, exit, output);
            assertNoWarning();
            assertEquals(ranks, output.lines()
                    .filter(line -> line.matches("rank \\d+: " + operations + " operations, \\d+ elements, 0 wrong"))
                    .count(), output);
        }

        /** Returns the names of the kernels of each rank that has ended. */
        List<Set<String>> kernels() {
            return KERNELS.matcher(output)
                    .results()
                    .map(line -> Set.of(line.group(1).replaceAll("=\\d+", "").split(" ")))
                    .toList();
        }

        /** Returns the functions that a rank ran in Java, in lower case. */
        Set<String> inJava(int rank) {
            return Pattern.compile("(?m)^rank " + rank + " in Java: (.*)$")
                    .matcher(output)
                    .results()
                    .map(line -> line.group(1).toLowerCase())
                    .collect(Collectors.toSet());
        }

        /** Asserts that each of the events was counted by at least one rank that ended. */
        void assertHappened(Set<String> events) {
            Set<String> missing = new TreeSet<>(events);
            kernels().forEach(missing::removeAll);
            assertEquals(Set.of(), missing, output);
        }

        /** Asserts that each rank that ended ran collectives, and that all of them used the given protocol. */
        void assertProtocol(int ranks, String protocol) {
            List<Set<String>> selected = kernels().stream()
                    .map(names -> names.stream()
                            .filter(name -> name.contains("/") && !name.startsWith("SendRecv"))
                            .map(name -> name.substring(name.lastIndexOf('/') + 1))
                            .collect(Collectors.toSet()))
                    .toList();
            assertEquals(Collections.nCopies(ranks, Set.of(protocol)), selected, output);
        }

        /**
         * Asserts that each rank has logged a line. The line contains the number of the rank's device, which equals the
         * rank's number.
         */
        void assertEachRankLogged(int ranks, String line) {
            for (int rank = 0; rank < ranks; rank++) {
                assertTrue(Pattern.compile("\\[" + rank + "] NCCL INFO " + line).matcher(output).find(),
                        "rank " + rank + ": " + line + "\n" + output);
            }
        }

        /** Asserts that each rank used the plugin with the settings of the environment. */
        void assertPlugin(int ranks, Map<String, String> environment) {
            String path = environment.get("MILLRACE_TAKEOVER").equals("1") ? "Java takes the proxy over"
                    : "NCCL's proxy moves the data";
            assertEachRankLogged(ranks, "NET/Millrace: Java .*, " + environment.getOrDefault("MILLRACE_NET", "auto")
                    + " over lo, .*; " + path);
            assertEachRankLogged(ranks, "Channel .* via NET/Millrace/");
            if (environment.containsKey("MILLRACE_TLS")) {
                assertEachRankLogged(ranks, "NET/Millrace: .*, TLS by the secret");
            }
        }

        /** Asserts that the given number of ranks ended, and that all elements that they compared were right. */
        void assertRight(int ranks) {
            assertEquals(0, exit, output);
            assertEquals(0, count("Cuda failure"), output);
            assertEquals(0, count(" 0 elements, "), output);
            assertEquals(ranks, count(" elements, 0 wrong"), output);
        }
    }

    @BeforeAll
    static void build() throws Exception {
        Path library = library();
        assumeTrue(library != null, "no libnccl of NCCL " + VERSION
                + ": -Dmillrace.nccl=PATH names its libnccl.so.2, or pip install nvidia-nccl-cu13==" + VERSION);
        assertTrue(Files.isRegularFile(library), "-Dmillrace.nccl=" + library + " is no file");
        nccl = library.toRealPath();
        Files.createDirectories(BUILT);
        try {
            if (isCompiled()) {
                requireLoads();
            } else {
                compile();
            }
        } catch (TestAbortedException noCompiler) {
            fail("the tests of libnccl need compilers: " + noCompiler.getMessage(), noCompiler);
        }
        javaOptions = HostProgram.javaOptions();
    }

    /**
     * Returns the library at the path in {@code millrace.nccl}. If this property is not set, returns the library of a
     * Python package; null without such a package.
     */
    private static Path library() {
        String named = System.getProperty("millrace.nccl");
        return named != null ? Path.of(named)
                : LibraryDirectories.list(Path.of("/"), System::getenv, List.of("nvidia/nccl/lib"))
                        .stream()
                        .filter(directory -> directory.endsWith("nvidia/nccl/lib"))
                        .map(directory -> directory.resolve("libnccl.so.2"))
                        .filter(file -> Files.exists(file)
                                && NcclLibrary.load(file.toString()).versionText().equals(VERSION))
                        .findFirst()
                        .orElse(null);
    }

    /** Returns whether the programs are newer than their sources, this class and the library. */
    private static boolean isCompiled() throws IOException {
        if (!Files.exists(RANKS) || !Files.exists(CUDA) || !Files.exists(NVML)) {
            return false;
        }
        FileTime compiled = Files.getLastModifiedTime(RANKS);
        Path tests = Path.of("src", "test", "java", "org", "millrace", "plugin", "LibncclTest.java");
        try (Stream<Path> sources = Stream.concat(Files.list(SOURCES), Files.walk(Path.of("headers")))) {
            for (Path source : Stream.concat(sources, Stream.of(nccl, tests)).toList()) {
                if (Files.getLastModifiedTime(source).compareTo(compiled) >= 0) {
                    return false;
                }
            }
        }
        return true;
    }

    /**
     * Compiles the programs. The one that {@link #isCompiled} reads is complete when it appears. Without -Werror,
     * because users have other compilers, and GCC 13 reports false warnings.
     */
    private static void compile() throws Exception {
        List<String> options = new ArrayList<>(List.of("-std=c++20", "-O2", "-Wall", "-fPIC", "-shared", "-pthread",
                "-fvisibility=hidden", "-Wl,-soname,libcuda-on-cpu.so", "-o", CUDA.toString()));
        for (String source : List.of("loader.cpp", "cuda.cpp", "kernels.cpp")) {
            options.add(SOURCES.resolve(source).toString());
        }
        options.add("-ldl");
        CCompiler.cPlusPlus(options);
        requireLoads(); // before the linker reads the library
        CCompiler.c(List.of("-std=gnu11", "-Wall", "-fPIC", "-shared", "-o", NVML.toString(),
                SOURCES.resolve("nvml.c").toString()));
        Path linked = BUILT.resolve("ranks.new");
        CCompiler.cPlusPlus(List.of("-std=c++20", "-O2", "-Wall", "-pthread", "-rdynamic", "-I", "headers", "-o",
                linked.toString(), SOURCES.resolve("ranks.cpp").toString(), CUDA.toString(), nccl.toString()));
        Files.move(linked, RANKS, StandardCopyOption.ATOMIC_MOVE);
    }

    private static void requireLoads() throws Exception {
        Outcome loaded = load(nccl);
        assertEquals(0, loaded.exit(), loaded.output());
    }

    private static Outcome run(Map<String, String> environment, int ranks, int hosts, String... arguments)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("sh", SOURCES.resolve("run.sh").toString(), nccl.toString(),
                Integer.toString(ranks), Integer.toString(hosts)));
        command.addAll(List.of(arguments));
        Outcome outcome = execute(environment, command);
        Map<String, String> printed = new TreeMap<>(environment);
        printed.keySet().removeIf(name -> !PRINTED.matcher(name).matches());
        System.out.printf("%d ranks on %d hosts %s %s: %d operations, %d elements, %d wrong%n", ranks, hosts, printed,
                String.join(" ", arguments), outcome.sum(1), outcome.sum(2), outcome.sum(3));
        return outcome;
    }

    /** Runs two ranks on two hosts, each rank with a limit of descriptors. */
    private static Outcome runWithin(int descriptors, Map<String, String> environment, String... arguments)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("sh", "-c", "ulimit -n " + descriptors + " && exec sh \"$@\"",
                "sh", SOURCES.resolve("run.sh").toString(), nccl.toString(), "2", "2"));
        command.addAll(List.of(arguments));
        return execute(environment, command);
    }

    private static Outcome execute(Map<String, String> environment, List<String> command)
            throws IOException, InterruptedException {
        Path log = Files.createTempFile(BUILT, "run", ".log");
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
        builder.environment().keySet().removeIf(name -> name.startsWith("NCCL_") || name.startsWith("MILLRACE_"));
        builder.environment().put("NCCL_CONF_FILE", "/dev/null");
        builder.environment().put("NCCL_RAS_ENABLE", "0"); // Another job of this machine may use the port of RAS.
        builder.environment().putAll(environment);
        Process process = builder.start();
        boolean ended = process.waitFor(DEADLINE_SECONDS, TimeUnit.SECONDS);
        List<ProcessHandle> ranks = process.descendants().toList();
        if (!ended) {
            // On this signal, the script removes its files.
            process.destroy();
            process.waitFor(TERMINATION_SECONDS, TimeUnit.SECONDS);
        }
        ranks.forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        String output = new String(Files.readAllBytes(log), UTF_8);
        Files.delete(log);
        return ended ? new Outcome(process.exitValue(), output)
                : fail("still running after " + DEADLINE_SECONDS + " s:\n" + output);
    }

    /** Returns the environment of a run with the plugin. */
    private static Map<String, String> plugin(String... settings) throws Exception {
        Map<String, String> environment = new TreeMap<>(Map.of("NCCL_NET_PLUGIN", HostProgram.library().toString(),
                "MILLRACE_JAR", HostProgram.jar().toString(), "MILLRACE_JAVA_HOME", System.getProperty("java.home"),
                "MILLRACE_JAVA_OPTS", javaOptions, "NCCL_DEBUG", "INFO", "NCCL_DEBUG_SUBSYS", "INIT,NET"));
        environment.putAll(environment(settings));
        return environment;
    }

    private static Map<String, String> environment(String... settings) {
        Map<String, String> environment = new TreeMap<>();
        for (String setting : String.join(" ", settings).split(" ")) {
            String[] parts = setting.split("=");
            environment.put(parts[0], parts[1]);
        }
        return environment;
    }

    @ParameterizedTest
    @CsvSource({"LL, Ring", "LL128, Ring", "Simple, Ring", "LL, Tree", "LL128, Tree", "Simple, Tree"})
    void allTypesAndOperatorsWithNcclsOwnTransports(String protocol, String algorithm) throws Exception {
        Map<String, String> environment = new TreeMap<>(OWN);
        environment.putAll(Map.of("NCCL_PROTO", protocol, "NCCL_ALGO", "allreduce:" + algorithm));
        Outcome outcome = run(environment, 2, hosts(protocol, 2), "1000,30001", ALL_TYPES, ALL_OPERATORS, "allReduce",
                "reduceScatter", "reduce");
        outcome.assertRight(2, 3 * 2 * 12 * 6);
        Set<String> kernels = Set.of("AllReduce/" + algorithm + "/" + protocol, "ReduceScatter/Ring/" + protocol,
                "Reduce/Ring/" + protocol);
        assertEquals(List.of(kernels, kernels), outcome.kernels(), outcome.output());
    }

    /**
     * Returns the number of hosts of a run with NCCL's own transports. Its socket network receives directly into the
     * slots. The kernel of the operating system copies by fast string instructions, whose stores have no order. So the
     * flag of a line of LL128 can be visible before the data in the line's first 64 bytes.
     */
    private static int hosts(String protocol, int ranks) {
        return protocol.equals("LL128") ? 1 : ranks;
    }

    /**
     * The script requires the plugin's network. Right elements therefore show that the script has found the plugin and
     * the plugin's classes.
     */
    @Test
    void theScriptFindsThePluginWithoutVariables() throws Exception {
        HostProgram.jar();
        Map<String, String> environment = new TreeMap<>(Map.of("MILLRACE_JAVA_HOME", System.getProperty("java.home")));
        run(environment, 2, 2, "1,1000", "7", "0,2").assertRight(2);
    }

    @ParameterizedTest
    @CsvSource({"shm, LL", "shm, LL128", "shm, Simple", "socket, LL128"})
    void takeover(String network, String protocol) throws Exception {
        Map<String, String> environment =
                plugin("MILLRACE_TAKEOVER=1", "MILLRACE_NET=" + network, "NCCL_PROTO=" + protocol);
        Outcome outcome = run(environment, 2, 2, "1,1000,100003", FLOATS, "0,5");
        outcome.assertRight(2, (3 * 2 + 8) * 3);
        outcome.assertPlugin(2, environment);
        outcome.assertProtocol(2, protocol);
    }

    /**
     * Kernels of the emulated device in Java run the launches of libnccl on all ranks but one. The interpreter runs the
     * launches of that rank. Java arranges lines of LL128 differently, so LL128 runs in the random operations only.
     */
    @ParameterizedTest
    @CsvSource({"LL, Tree, 1, 300001", "Simple, Ring, 0, 600011"})
    void kernelsOfTheEmulatedDevice(String protocol, String algorithm, int interpreted, String largest)
            throws Exception {
        Map<String, String> environment = plugin("MILLRACE_TAKEOVER=1", "MILLRACE_NET=socket", "NCCL_PROTO=" + protocol,
                "NCCL_ALGO=allreduce:" + algorithm, SMALL, FEW_ARGUMENTS);
        environment.merge("MILLRACE_JAVA_OPTS", " -javaagent:" + agent() + "=" + interpreted, String::concat);
        Outcome outcome = run(environment, 3, 3, ("1,1000," + largest + " 2,7 0,2 " + IN_JAVA).split(" "));
        outcome.assertRight(3, (3 * 2 + 6) * 3 * 2);
        outcome.assertPlugin(3, environment);
        Set<String> expected = inJava(algorithm + "/" + protocol, protocol);
        for (int rank = 0; rank < 3; rank++) {
            Set<String> found = outcome.inJava(rank);
            found.removeIf(line -> line.contains(" batches "));
            assertEquals(rank == interpreted ? Set.of() : expected, found, outcome.output());
        }
        assertEquals(2, outcome.kernels().stream().filter(Set.of("Java")::equals).count(), outcome.output());
    }

    /**
     * Java runs most launches of the random operations, including the persistent plans of graphs. The interpreter runs
     * the other launches. In the second case the interpreter runs all launches of rank 0.
     */
    @ParameterizedTest
    @CsvSource({"13, LL128, -1", "14, Simple, 0"})
    void randomOperationsOfTheEmulatedDevice(int number, String protocol, int interpreted) throws Exception {
        assumeTrue(interpreted < 0 || isThorough(), "runs with more than 25 rounds");
        Map<String, String> environment =
                plugin("MILLRACE_TAKEOVER=1", "MILLRACE_NET=shm", "NCCL_PROTO=" + protocol, SMALL, FEW_ARGUMENTS);
        environment.merge("MILLRACE_JAVA_OPTS", " -javaagent:" + agent() + "=" + interpreted, String::concat);
        Outcome outcome = run(environment, 3, 3, "random", Long.toString(SEED + number), Integer.toString(ROUNDS));
        outcome.assertRight(3);
        outcome.assertNoWarning();
        outcome.assertPlugin(3, environment);
        outcome.assertHappened(Set.of("Java", "graph", "split", "shrink"));
        for (int rank = 0; rank < 3; rank++) {
            Set<String> missing = new TreeSet<>();
            if (rank != interpreted) {
                missing.addAll(inJava("Ring", protocol));
                missing.addAll(List.of("work in persistent", "several batches of a channel"));
            }
            Set<String> found =
                    outcome.inJava(rank).stream().map(line -> line.split("/")[0]).collect(Collectors.toSet());
            missing.removeIf(line -> found.contains(line.split("/")[0]));
            assertEquals(Set.of(), missing, outcome.output());
        }
    }

    /** Returns the lines that a rank prints if Java runs the collectives of {@code IN_JAVA}, in lower case. */
    private static Set<String> inJava(String allReduce, String protocol) {
        return Stream
                .concat(Stream.of("work in arguments", "work in fifo"),
                        Stream.of(IN_JAVA.split(" "))
                                .map(name -> name.equals("allReduce") ? name + "/" + allReduce
                                        : POINT_TO_POINT.contains(name) ? "sendRecv" : name + "/Ring/" + protocol))
                .map(String::toLowerCase)
                .collect(Collectors.toSet());
    }

    /** Returns a Java agent with {@link LaunchedKernel}. */
    private static Path agent() throws IOException {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().putValue("Manifest-Version", "1.0");
        manifest.getMainAttributes().putValue("Premain-Class", LaunchedKernel.class.getName());
        Path agent = BUILT.resolve("launched-kernel.jar").toAbsolutePath();
        Path classes = Path.of("target", "test-classes");
        String name = LaunchedKernel.class.getSimpleName();
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(agent), manifest);
                var files = Files.newDirectoryStream(classes.resolve("org/millrace/device"), name + "*.class")) {
            for (Path file : files) {
                out.putNextEntry(new ZipEntry(classes.relativize(file).toString()));
                Files.copy(file, out);
            }
        }
        return agent;
    }

    /**
     * The limit of descriptors also counts the program's files. NCCL's own proxy needs a limit of 73 descriptors,
     * because its call of {@code poll} lists 73 connections.
     */
    @ParameterizedTest
    @ValueSource(strings = {"own", "shm", "socket"})
    void aRankNeedsNoHigherLimitOfDescriptorsThanWithNcclsOwnProxy(String network) throws Exception {
        Map<String, String> environment =
                network.equals("own") ? OWN : plugin("MILLRACE_TAKEOVER=1", "MILLRACE_NET=" + network);
        Outcome outcome = runWithin(74, environment, "1,100003", FLOATS, SUM);
        outcome.assertRight(2, (3 + 8) * 2);
        if (!network.equals("own")) {
            outcome.assertPlugin(2, environment);
        }
    }

    /**
     * NCCL runs a group of broadcasts as one all-gather-v. Operators that multiply need a kernel even in a group of one
     * rank.
     */
    @Test
    void collectivesThatNcclMakesOfOthers() throws Exception {
        Outcome one = run(OWN, 1, 1, "1,1000", "0,1,2,3,4,5,6,7,8,9", "4,5");
        one.assertRight(1, (3 * 2 + 8) * 10 * 2);
        assertEquals(List.of(Set.of("OneRankReduce")), one.kernels(), one.output());
        for (String protocol : List.of("LL", "LL128", "Simple")) {
            Map<String, String> environment = new TreeMap<>(OWN);
            environment.put("NCCL_PROTO", protocol);
            Outcome outcome = run(environment, 3, hosts(protocol, 3), "1000,300001", FLOATS, SUM, "allGatherV");
            outcome.assertRight(3, 2);
            assertEquals(Collections.nCopies(3, Set.of("AllGatherV/Ring/" + protocol)), outcome.kernels(),
                    outcome.output());
        }
    }

    /**
     * Random collectives in groups and graphs, on communicators that are created, split, shrunk and destroyed. The seed
     * also depends on the case. All ranks use the same protocols. NCCL selects them by size, unless the case sets a
     * protocol. A case that resembles another case runs a fifth of the rounds. The case of eight ranks runs a twelfth.
     * The five rounds of the cases 20 and 87 include a graph and a split if the seed is the default one.
     */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"0 | 3 | 2 | 1 | own", "1 | 4 | 2 | 1 | MILLRACE_NET=shm", //
                    "2 | 4 | 4 | 1 | MILLRACE_NET=socket",
                    "87 | 2 | 2 | 5 | MILLRACE_NET=socket MILLRACE_TLS=1 MILLRACE_SECRET=secret",
                    "87 | 2 | 2 | 5 | MILLRACE_NET=ucx", "20 | 3 | 2 | 5 | MILLRACE_TAKEOVER=0",
                    "6 | 8 | 4 | 12 | NCCL_MAX_CTAS=1", "7 | 2 | 2 | 1 | NCCL_PROTO=LL128 NCCL_CUMEM_ENABLE=1",
                    "8 | 3 | 3 | 5 | NCCL_PROTO=Simple MILLRACE_NET=socket",
                    "9 | 3 | 1 | 5 | NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1",
                    "10 | 2 | 2 | 1 | MILLRACE_NET=shm MILLRACE_DEVICE_SLOTS=1"})
    void randomOperations(int number, int ranks, int hosts, int part, String settings) throws Exception {
        Ucx.assumeUsable(settings.equals("MILLRACE_NET=ucx") ? "ucx" : "");
        Map<String, String> environment = environment(SMALL);
        environment.putAll(OWN);
        if (!settings.equals("own")) {
            environment.putAll(plugin("MILLRACE_TAKEOVER=1"));
            environment.putAll(environment(settings));
        }
        boolean deviceSlots = environment.containsKey("MILLRACE_DEVICE_SLOTS");
        if (deviceSlots) { // The plugin makes its copies with the stub of the driver.
            environment.put("LD_LIBRARY_PATH", HostProgram.compileStub("cuda.c", "libcuda.so.1").toString());
        }
        int rounds = ROUNDS / part;
        Outcome outcome =
                run(environment, ranks, hosts, "random", Long.toString(SEED + number), Integer.toString(rounds));
        outcome.assertRight(ranks);
        outcome.assertNoWarning();
        if (rounds >= 25) {
            outcome.assertHappened(DRAWN);
        } else if (number > 10 && SEED == 1 && ROUNDS == 25) {
            outcome.assertHappened(Set.of("graph", "split", "allReduce"));
            if (settings.equals("MILLRACE_TAKEOVER=0")) {
                outcome.assertHappened(Set.of("OFFSET"));
            }
        }
        if (deviceSlots) {
            outcome.assertEachRankLogged(ranks, "Channel .* via NET/Millrace/0/GDRDMA");
        }
        // NCCL's own proxy gives sends and receives shared slots, which kernels find by offset.
        if (settings.equals("own")) {
            outcome.assertHappened(Set.of("OFFSET"));
        } else {
            outcome.assertPlugin(ranks, environment);
        }
        if (environment.containsKey("NCCL_PROTO")) {
            outcome.assertProtocol(ranks, environment.get("NCCL_PROTO"));
        }
        assertEquals(environment.containsKey("NCCL_CUMEM_ENABLE") ? ranks : 0, outcome.count(" cuMemCreate="),
                outcome.output());
    }

    /** Ranks abort in flight, and finalize and destroy communicators in each order. One rank is killed. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"order | 2 | MILLRACE_TAKEOVER=1", //
                    "abort | 2 | MILLRACE_NET=shm", "kill | 3 | MILLRACE_NET=shm", "abort | 3 | MILLRACE_NET=socket",
                    "kill | 3 | MILLRACE_NET=socket",
                    "kill | 3 | MILLRACE_NET=socket MILLRACE_TLS=1 MILLRACE_SECRET=secret",
                    "kill | 3 | MILLRACE_NET=ucx", "kill | 3 | MILLRACE_TAKEOVER=0"})
    void life(String scenario, int ranks, String settings) throws Exception {
        Ucx.assumeUsable(settings.equals("MILLRACE_NET=ucx") ? "ucx" : "");
        Map<String, String> environment = plugin("MILLRACE_TAKEOVER=1", SMALL);
        environment.putAll(environment(settings));
        // A second channel would double the connections, which take most of the time. The scenario "order" creates 18
        // communicators.
        environment.put("NCCL_MAX_NCHANNELS", scenario.equals("order") ? "1" : "2");
        Outcome outcome = run(environment, ranks, ranks, "life", scenario);
        outcome.assertRight(scenario.equals("kill") ? ranks - 1 : ranks);
        if (scenario.equals("order")) {
            outcome.assertNoWarning();
        }
        outcome.assertPlugin(ranks, environment);
    }

    /** Further cases for runs with more than 25 rounds, such as the nightly runs. */
    @ParameterizedTest
    @EnabledIf("isThorough")
    @CsvSource(
            delimiter = '|',
            value = {"abort | 2 | MILLRACE_NET=socket MILLRACE_TLS=1 MILLRACE_SECRET=secret",
                    "abort | 2 | MILLRACE_NET=ucx", "abort | 2 | MILLRACE_TAKEOVER=0"})
    void lifeOverFurtherNetworks(String scenario, int ranks, String settings) throws Exception {
        life(scenario, ranks, settings);
    }

    static boolean isThorough() {
        return ROUNDS > 25;
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"9 2 1 7 0 | 9 ranks on 2 hosts: give at most 8 ranks", "2x 2 1 7 0 | 2x ranks on 2 hosts",
                    "2 3 1 7 0 | 2 ranks on 3 hosts: give at most 8 ranks and as many hosts",
                    "3 1 life kill | kill needs two ranks, and as many hosts as ranks",
                    "1 1 random 7 abc | random: give numbers instead of 7 abc",
                    "1 1 random 7,8 5 | random: give numbers", "1 1 random 7 0 | random: give numbers",
                    "1 1 1 7 9 broadcast | argument 9: give numbers from 0 to 5",
                    "1 1 1,2, 7 0 | argument : give numbers from 0",
                    "1 1 1 12 0 | argument 12: give numbers from 0 to 11",
                    "1 1 1 7 0 allreduce | unknown collective allreduce",
                    "1 1 life death | give abort, kill or order instead of death"})
    void wrongArgumentsAreNamed(String arguments, String reason) throws Exception {
        List<String> command = new ArrayList<>(List.of("sh", SOURCES.resolve("run.sh").toString(), nccl.toString()));
        command.addAll(List.of(arguments.split(" ")));
        Outcome outcome = execute(OWN, command);
        assertTrue(outcome.exit() == 1 || outcome.exit() == 2, outcome.toString());
        assertTrue(outcome.output().contains(reason), outcome.output());
    }

    @Test
    void theScriptNamesALibraryThatIsMissing() throws Exception {
        String missing = nccl.resolveSibling("libnccl.absent").toString();
        Outcome outcome =
                execute(OWN, List.of("sh", SOURCES.resolve("run.sh").toString(), missing, "1", "1", "1", "7", "0"));
        assertEquals(2, outcome.exit(), outcome.output());
        assertTrue(outcome.output().contains("there is no library " + missing), outcome.output());
    }

    @Test
    void aFunctionThatIsNotImplementedFailsWithItsName() throws Exception {
        Path source = Files.writeString(BUILT.resolve("absent.c"), """
                int cudaGetDriverEntryPointByVersion(const char *, void *, unsigned, unsigned long long, int *);
                int main(void) {
                  int (*function)(void);
                  int error = cudaGetDriverEntryPointByVersion("cuArrayCreate", &function, 13000, 0, 0);
                  return error != 0 || function() != 801; // CUDA_ERROR_NOT_SUPPORTED
                }
                """);
        Path program = BUILT.resolve("absent").toAbsolutePath();
        CCompiler.c(List.of("-std=gnu11", "-Wall", "-o", program.toString(), source.toString(), CUDA.toString(),
                "-Wl,-rpath," + CUDA.getParent()));
        Outcome outcome = execute(Map.of(), List.of(program.toString()));
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals("libnccl without a GPU: cuArrayCreate is not implemented\n", outcome.output());
    }

    @Test
    void aLibraryThatIsNotNcclIsRefusedByName() throws Exception {
        refused(NVML, " has NCCL's version code 0; only 23007 is supported");
    }

    @ParameterizedTest
    @ValueSource(ints = {22809, 23006, 23100})
    void aLibraryOfAnotherVersionIsRefused(int version) throws Exception {
        Path source = Files.writeString(BUILT.resolve("version.c"),
                "int ncclGetVersion(int *version) { *version = " + version + "; return 0; }");
        Path other = BUILT.resolve("version.so").toAbsolutePath();
        CCompiler.c(List.of("-shared", "-fPIC", "-o", other.toString(), source.toString()));
        refused(other, " has NCCL's version code " + version + "; only 23007 is supported");
    }

    @Test
    void aLibraryWithoutASymbolTableIsRefused() throws Exception {
        Path stripped = BUILT.resolve("stripped.so").toAbsolutePath();
        try {
            CCompiler.run(List.of("strip", "-s", "-o", stripped.toString(), nccl.toString()));
            refused(stripped, " has no symbol table");
        } finally {
            Files.deleteIfExists(stripped);
        }
    }

    /** Loads a library in a program that does nothing else. */
    private static Outcome load(Path library) throws Exception {
        return execute(Map.of("LD_PRELOAD", CUDA.toString(), "MILLRACE_NCCL", library.toString()), List.of("true"));
    }

    private static void refused(Path library, String reason) throws Exception {
        Outcome outcome = load(library);
        assertEquals(1, outcome.exit(), outcome.output());
        assertTrue(outcome.output().contains(library + reason), outcome.output());
    }
}
