package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.millrace.cli.Main;
import org.millrace.cli.MatrixMain;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;

/**
 * The page {@code seeds.md} matches the code. Millrace comes from five documents, the seeds, and each item of the seeds
 * has a row on the page. The named classes and tests exist, and the commands can be parsed. An item is "whole" if the
 * code covers it completely. The rows of all other items state a reason. The row of a whole item names test methods,
 * and the source of these tests mentions a class of the row. The page's totals equal the numbers of rows. Each variable
 * of the seeds and each setting has a row. The code reads a variable unless the variable's row calls it meaningless.
 */
class SeedsPageTest {

    private static final Path PAGE = Path.of("src/site/markdown/development/seeds.md");
    /** Location of the seeds, which are documents beside the repository. Not every machine has the documents. */
    private static final Path SEEDS = Path.of("../shared/seeds");
    /**
     * Pattern of variables in the seeds. The pattern excludes NCCL's macros and constants, which the seeds name too.
     */
    private static final Pattern VARIABLE =
            Pattern.compile("export (NCCL_[A-Z0-9_]+)|`(NCCL_[A-Z0-9_]+)(?:=1)?`|^(NCCL_[A-Z0-9_]+)=\\d");
    private static final Pattern LITERAL = Pattern.compile("\"((?:NCCL|MILLRACE)_[A-Z0-9_]*[A-Z0-9])[\"=]");
    private static final Pattern WORD = Pattern.compile("(?:[^\\s\"']+|\"[^\"]*\"|'[^']*')+");
    private static final Pattern QUOTED = Pattern.compile("`([^`]+)`");
    /** Variables that the seeds name. They are listed here because the seeds are not part of the repository. */
    private static final Set<String> OF_THE_SEEDS = Set.of("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_PROXY_TRACE",
            "NCCL_PROXY_IDLE_THRESHOLD", "NCCL_PROXY_IDLE_SLEEP_US", "NCCL_NET_MAX_RECVS", "NCCL_WORK_FIFO_BYTES",
            "NCCL_NET_DEVICE_UNPACK_ENABLED", "NCCL_NET_DEVICE_UNPACK_THRESHOLD", "NCCL_SHM_USE_CUDA_MEMCPY",
            "NCCL_SHM_MEMCPY_MODE", "NCCL_SHM_LOCALITY", "NCCL_P2P_USE_CUDA_MEMCPY", "NCCL_MY_TRANSPORT_ENABLE");
    private static final List<String> STATES = List.of("whole", "partial", "measured, not met", "not here");
    /** Pattern of annotated test methods. Group 1 is the method's name. */
    private static final Pattern TEST_METHOD =
            Pattern.compile("(?s)@(?:Test|ParameterizedTest|TestFactory|RepeatedTest)\\b.*?\\bvoid (\\w+)\\(");
    private static final Pattern SUPERCLASS = Pattern.compile("\\bclass \\w+(?:<[^{]*>)? extends (\\w+)");
    /**
     * Tests that need not mention a class of their row. They run whole ranks, commands or C programs, or check all of
     * NCCL's declarations. The source of every other test of a whole item must mention a class of the item's row.
     */
    private static final Set<String> FROM_OUTSIDE = Set.of("AbiProofTest", "AbortTest", "CollNetHostTest",
            "CollNetLeadersTest", "CollNetTest", "CommunicatorsInOneGroupTest", "DisagreementTest",
            "EngineAllReduceTest", "EngineAllocationTest", "EngineBufferModesTest", "EngineCollectivesTest",
            "EngineErrorsTest", "EnginePlanTest", "EngineRailsTest", "EngineUnpackTest", "EngineWorkTest",
            "ExamplesTest", "GoesOnHostTest", "GroupedReceivesTest", "InspectCommandsTest", "KilledPeerTest",
            "LossHostTest", "MatrixCommandTest", "NcclHeadersTest", "PartialFailureTest", "PlantedBugsTest",
            "PlantedStallTest", "PluginCollectivesTest", "PluginHostTest", "PluginRailsTest", "ProfilerEventsTest",
            "RandomProgramTest", "ReadInPlaceTest", "SplitTest", "StreamCaptureTest", "TakeoverTeardownTest",
            "TransportsTest", "TypedFailuresTest", "UnpackHostTest", "WhyCommandTest");
    private static final List<String> EFFECTS = List.of("works", "NCCL's", "set", "refused", "meaningless");

    /** Rows of the page that describe an item, with six cells each. */
    private static final List<List<String>> items = new ArrayList<>();
    /** Numbers in the page's table, by seed: the total number of items, then the number of items in each state. */
    private static final Map<String, List<Integer>> said = new TreeMap<>();
    /** Numbers as in {@link #said}, but counted in the rows of items. */
    private static final Map<String, List<Integer>> counted = new TreeMap<>();
    private static final Map<String, List<String>> variables = new HashMap<>();
    /** Source files by class name. */
    private static final Map<String, Path> files = new HashMap<>();
    /** Variables that the code names. */
    private static final Set<String> named = new HashSet<>();

    @BeforeAll
    static void read() throws IOException {
        String seed = "";
        for (String line : Files.readAllLines(PAGE)) {
            if (line.startsWith("## ")) {
                seed = line.substring(3, 6);
            } else if (line.startsWith("| ") && !line.startsWith("| ---")) {
                List<String> cells =
                        Stream.of(line.substring(1, line.length() - 1).split("\\|", -1)).map(String::strip).toList();
                if (cells.size() == 4 && !cells.getFirst().equals("variable")) {
                    String name = quoted(cells.getFirst()).getFirst();
                    assertEquals(null, variables.put(name, cells), name + " has two rows");
                } else if (cells.size() == 6 && STATES.contains(cells.get(1))) {
                    items.add(cells);
                    count(seed, cells.get(1));
                    count("all", cells.get(1));
                } else if (cells.size() == 6 && cells.get(1).matches("\\d+")) {
                    said.put(cells.getFirst(), cells.subList(1, 6).stream().map(Integer::valueOf).toList());
                } else {
                    assertTrue(List.of("variable", "item", "seed").contains(cells.getFirst()), line);
                }
            }
        }
        for (String root : List.of("src", "bench/src")) {
            try (Stream<Path> sources = Files.walk(Path.of(root))) {
                for (Path source : (Iterable<Path>) sources
                        .filter(path -> path.toString().endsWith(".java"))::iterator) {
                    files.put(source.getFileName().toString().replace(".java", ""), source);
                    if (source.startsWith("src/main/java")) {
                        LITERAL.matcher(Files.readString(source)).results().forEach(found -> named.add(found.group(1)));
                    }
                }
            }
        }
    }

    private static void count(String seed, String state) {
        List<Integer> counts = counted.computeIfAbsent(seed, _ -> new ArrayList<>(List.of(0, 0, 0, 0, 0)));
        counts.set(0, counts.getFirst() + 1);
        int at = 1 + STATES.indexOf(state);
        counts.set(at, counts.get(at) + 1);
    }

    private static List<String> quoted(String cell) {
        return QUOTED.matcher(cell).results().map(found -> found.group(1)).toList();
    }

    @Test
    void everyItemHasItsClassesItsTestsAndItsReason() {
        for (List<String> row : items) {
            List<String> classes = quoted(row.get(2));
            List<String> tests = quoted(row.get(3));
            assertTrue(!classes.isEmpty() && !tests.isEmpty(), row.toString());
            classes.forEach(name -> assertTrue(files.containsKey(name), name + " in " + row));
            tests.stream()
                    .map(SeedsPageTest::classOf)
                    .forEach(test -> assertTrue(test.endsWith("Test") && files.containsKey(test), test + " in " + row));
            assertTrue(STATES.contains(row.get(1)), row.toString());
            assertEquals(row.get(1).equals("whole"), row.get(5).isEmpty(), "a reason, or none, for " + row);
        }
    }

    @Test
    void aWholeClaimNamesTestMethodsThatMentionItsClasses() throws IOException {
        Set<String> wrong = new TreeSet<>();
        Set<String> needless = new TreeSet<>(FROM_OUTSIDE);
        for (List<String> row : items) {
            for (String test : quoted(row.get(3))) {
                String source = source(classOf(test));
                boolean isMethod = test.contains(".");
                if (isMethod || row.get(1).equals("whole")) {
                    String method = test.substring(test.indexOf('.') + 1);
                    if (TEST_METHOD.matcher(source).results().noneMatch(found -> method.equals(found.group(1)))) {
                        wrong.add(test + " is no test method: " + row.getFirst());
                    }
                }
                boolean mentions = quoted(row.get(2)).stream()
                        .anyMatch(name -> Pattern.compile("\\b" + name + "\\b").matcher(source).find());
                if (row.get(1).equals("whole") && !mentions && !needless.remove(classOf(test))
                        && !FROM_OUTSIDE.contains(classOf(test))) {
                    wrong.add(test + " mentions none of " + row.get(2) + ": " + row.getFirst());
                }
            }
        }
        assertEquals(Set.of(), wrong);
        assertEquals(Set.of(), needless, "tests that need no exception");
    }

    /** Returns the class of a test that is named {@code Class} or {@code Class.method}. */
    private static String classOf(String test) {
        return test.split("\\.")[0];
    }

    /** Returns the source of a test class and of its superclasses in this repository. */
    private static String source(String test) throws IOException {
        String source = Files.readString(files.get(test));
        Matcher matcher = SUPERCLASS.matcher(source);
        return matcher.find() && files.containsKey(matcher.group(1)) ? source + source(matcher.group(1)) : source;
    }

    @Test
    void theCountsAreThoseOfTheRows() {
        assertEquals(counted, said);
        assertTrue(counted.get("all").get(1) >= 215, counted.toString());
    }

    @Test
    void everyCommandIsOne() throws IOException {
        Set<String> commands = new TreeSet<>();
        items.forEach(row -> commands.addAll(quoted(row.get(4))));
        String pom = Files.readString(Path.of("pom.xml"));
        for (String command : commands) {
            List<String> words = new ArrayList<>(WORD.matcher(command).results().map(found -> found.group()).toList());
            if (words.getFirst().startsWith("MILLRACE_")) {
                requireSetting(words.removeFirst(), command);
            }
            switch (words.removeFirst()) {
                case "millrace" -> parse(words, command, Main::run);
                case "mvn" -> words.forEach(word -> checkMaven(word, command, pom));
                case "java" -> checkBenchmark(words, command);
                case String script ->
                    assertTrue(script.startsWith("bench/") && Files.isExecutable(Path.of(script)), command);
            }
        }
    }

    private interface CommandLine {
        int run(PrintWriter out, PrintWriter err, String... arguments);
    }

    /**
     * Parses a command after adding a request for help. The parse succeeds only if all words of the command are valid.
     */
    private static void parse(List<String> words, String command, CommandLine line) {
        for (int at; (at = words.indexOf("-D")) >= 0;) {
            words.remove(at);
            requireSetting(words.remove(at), command);
        }
        words.add("--help");
        StringWriter said = new StringWriter();
        PrintWriter out = new PrintWriter(said);
        String[] bare = words.stream().map(word -> word.replaceAll("[\"']", "")).toArray(String[]::new);
        assertEquals(0, line.run(out, out, bare), () -> command + ": " + said);
    }

    private static void requireSetting(String assignment, String command) {
        String[] pair = assignment.split("=", 2);
        Configuration.load(Map.of(), new Properties(), Map.of(pair[0], pair[1]))
                .get(Settings.all()
                        .stream()
                        .filter(each -> each.name().equals(pair[0]))
                        .findAny()
                        .orElseThrow(() -> new AssertionError(pair[0] + " is no setting: " + command)));
    }

    private static void checkMaven(String word, String command, String pom) {
        if (word.startsWith("-Dtest=")) {
            assertTrue(files.containsKey(word.substring("-Dtest=".length())), command);
        } else if (word.startsWith("-Dmatrix.args=")) {
            String arguments = word.substring("-Dmatrix.args=".length()).replace("\"", "");
            List<String> words = new ArrayList<>(List.of("matrix"));
            WORD.matcher(arguments).results().forEach(found -> words.add(found.group()));
            parse(words, command, MatrixMain::run);
        } else if (word.startsWith("-P")) {
            assertTrue(pom.contains("<id>" + word.substring(2) + "</id>"), command);
        } else {
            assertEquals("test", word, command);
        }
    }

    private static void checkBenchmark(List<String> words, String command) {
        String name = words.getLast();
        if (words.getFirst().equals("-cp")) {
            assertEquals(List.of("-cp", "bench/target/millrace-bench.jar"), words.subList(0, words.size() - 1),
                    command);
            assertTrue(files.containsKey(name.substring(name.lastIndexOf('.') + 1)), command);
            return;
        }
        assertEquals(List.of("-jar", "bench/target/millrace-bench.jar", "jmh"), words.subList(0, words.size() - 1),
                command);
        assertTrue(files.keySet().stream().anyMatch(file -> file.startsWith(name) && file.endsWith("Benchmark")),
                command);
    }

    @Test
    void everySettingThatIsReadHasItsRow() {
        Set<String> missing = new TreeSet<>(OF_THE_SEEDS);
        Settings.all().forEach(setting -> missing.add(setting.name()));
        missing.addAll(named);
        missing.removeAll(variables.keySet());
        assertEquals(Set.of(), missing);
    }

    @Test
    void everyRowsVariableIsReadOrMeansNothing() {
        variables.forEach((name, cells) -> {
            List<String> effects = cells.subList(1, 4);
            effects.forEach(cell -> {
                assertTrue(EFFECTS.stream().anyMatch(cell::startsWith), name + ": " + cell);
                assertTrue(
                        cell.startsWith("works") || cell.startsWith("NCCL's") || cell.startsWith("set ")
                                || cell.startsWith("set,") || cell.contains(":") || cell.startsWith("refused but"),
                        name + " does not say why: " + cell);
            });
            boolean meaningless = effects.stream().allMatch(cell -> cell.startsWith("meaningless"));
            assertEquals(!meaningless, named.contains(name), name);
        });
    }

    /** {@link #OF_THE_SEEDS} lists exactly the variables of the seeds, if the documents are present. */
    @Test
    void theSeedsNameNoOtherVariable() throws IOException {
        assumeTrue(Files.isDirectory(SEEDS), "the documents are not here");
        Set<String> found = new HashSet<>();
        try (Stream<Path> documents = Files.list(SEEDS)) {
            for (Path document : (Iterable<Path>) documents::iterator) {
                for (String line : Files.readAllLines(document)) {
                    VARIABLE.matcher(line)
                            .results()
                            .forEach(match -> found.add(Stream.of(match.group(1), match.group(2), match.group(3))
                                    .filter(Objects::nonNull)
                                    .collect(Collectors.joining())));
                }
            }
        }
        // constants of NCCL, not variables
        found.removeAll(Set.of("NCCL_STEPS", "NCCL_NET_DEVICE_PACK", "NCCL_NET_DEVICE_RDMA", "NCCL_NET_DEVICE_COMPRESS",
                "NCCL_NET_DEVICE_UNPACK_MAX_QUEUE_DEPTH"));
        // the seeds name only "MY_TRANSPORT_ENABLE", as the argument of a macro
        found.add("NCCL_MY_TRANSPORT_ENABLE");
        assertEquals(OF_THE_SEEDS, found);
    }
}
