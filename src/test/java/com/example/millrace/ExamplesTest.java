package com.example.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Millrace;

/** Starts the programs of {@code src/examples} as a reader would start them. */
class ExamplesTest {

    /** The {@code main} of an example. */
    private interface Program {
        void main(String[] args) throws Exception;
    }

    @Test
    void twoProcessesAddTheirNumbers(@TempDir Path directory) throws Exception {
        List<Process> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            ProcessBuilder builder =
                    new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-cp",
                            System.getProperty("java.class.path"), AllReduce.class.getName(),
                            "file:" + directory.resolve("g"), "" + rank, "2").redirectErrorStream(true);
            builder.environment().put("MILLRACE_DEVICE", "host");
            ranks.add(builder.start());
        }
        for (int rank = 0; rank < 2; rank++) {
            String printed = new String(ranks.get(rank).getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertTrue(ranks.get(rank).waitFor(30, TimeUnit.SECONDS), printed);
            assertEquals("rank " + rank + " on emulated device " + rank + ": element 7 is 15.0\n", printed);
        }
    }

    @Test
    @ResourceLock(Resources.SYSTEM_OUT)
    void arraysBuffersAndStages() throws Exception {
        assertEquals(Set.of("rank 0 was told hello", "rank 1 was told hello", "rank 0 has [0, 0, 1, 10]",
                "rank 1 has [0, 0, 1, 10]"), printedBy(Operands::main));
    }

    /** The number of ranks does not change the result. A single rank is its own neighbor in the ring. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    @ResourceLock(Resources.SYSTEM_OUT)
    void heatSpreadsOverTheRanks(int ranks) throws Exception {
        assertEquals(Set.of("heat of 1200 cells: 100.000, of the first cell: 2.523"),
                printedBy(_ -> Millrace.local(ranks, Diffusion::diffuse)));
    }

    @Test
    @ResourceLock(Resources.SYSTEM_OUT)
    void aGroupExchangesAndAPlanRunsThreeTimes() throws Exception {
        assertEquals(Set.of("rank 0 received 2.0", "rank 1 received 1.0", "rank 0 has 12.0 after three sums",
                "rank 1 has 12.0 after three sums"), printedBy(GroupsAndPlans::main));
    }

    @Test
    @ResourceLock(Resources.SYSTEM_OUT)
    void aProgramForGpusRunsWhereThereIsNone() throws Exception {
        Set<String> printed = printedBy(OnDevice::main, "1");
        assertTrue(printed.contains("host: usable"), printed.toString());
        assertTrue(printed.stream().anyMatch(line -> line.endsWith(": the largest is 65535.0")), printed.toString());
    }

    @Test
    @ResourceLock(Resources.SYSTEM_OUT)
    void dataGoesOverTheTransportOfAnotherJar() throws Exception {
        Set<String> printed = printedBy(OtherTransport::main);
        assertEquals(2, printed.size(), printed.toString());
        assertTrue(printed.stream().allMatch(line -> line.contains("UNIX")), printed.toString());
    }

    @Test
    @ResourceLock(Resources.SYSTEM_OUT)
    void kernelsPutAndSignal() throws Exception {
        assertEquals(Set.of("the answer is 168"), printedBy(GinPing::main));
    }

    /**
     * Two ranks are lost at once during the training, rank 0 among them. The other ranks still reach the same result as
     * a training without lost ranks.
     */
    @Test
    @ResourceLock(Resources.SYSTEM_OUT)
    void trainingGoesOnWithoutLostRanks(@TempDir Path directory) throws Exception {
        Set<String> printed = printedBy(_ -> {
            List<CompletableFuture<Void>> ranks = new ArrayList<>();
            for (int rank = 0; rank < 4; rank++) {
                String[] args = {directory.toString(), "" + rank, "4", "0", "2"};
                ranks.add(CompletableFuture.runAsync(() -> {
                    try {
                        Sgd.main(args);
                    } catch (IOException e) {
                        throw new UncheckedIOException(e);
                    }
                }, each -> Thread.ofPlatform().start(each)));
            }
            for (CompletableFuture<Void> rank : ranks) {
                rank.get(60, TimeUnit.SECONDS);
            }
        });
        assertTrue(printed.containsAll(Set.of("rank 0 is lost", "rank 2 is lost", "rank 1 goes on as rank 0 of 2",
                "rank 3 goes on as rank 1 of 2")), printed.toString());
        String last =
                printed.stream().filter(line -> line.startsWith("2 ranks have trained: ")).findFirst().orElseThrow();
        assertTrue(last.matches(".*: (9\\d|100) % of the rows are told right"), last);
    }

    @ParameterizedTest
    @ValueSource(strings = {"flat", "hybrid", "low-latency"})
    @ResourceLock(Resources.SYSTEM_OUT)
    void tokensGoToTheirExpertsAndBack(String mode) throws Exception {
        assertEquals(Set.of("800 tokens went to 2 experts each and came back, all as the reference has it"),
                printedBy(Experts::main, mode));
    }

    /** Millrace's module exports everything that programs and transports on the module path need. */
    @Test
    void theExamplesCompileAsAModule(@TempDir Path directory) throws Exception {
        List<String> sources = new ArrayList<>();
        try (Stream<Path> files = Files.walk(Path.of("src", "examples", "java"))) {
            files.filter(each -> each.toString().endsWith(".java")).forEach(each -> sources.add(each.toString()));
        }
        sources.add(
                Files.writeString(directory.resolve("module-info.java"), "module program { requires org.millrace; }")
                        .toString());
        String jars = System.getProperty("java.class.path");
        Path library = directory.resolve("library");
        compile("-d", library.toString(), "-p", jars, "--patch-module", "org.millrace=target/classes",
                Path.of("src", "main", "module", "module-info.java").toString());
        List<String> arguments = new ArrayList<>(List.of("-d", directory.resolve("out").toString(), "-p",
                library + File.pathSeparator + jars, "--patch-module", "org.millrace=target/classes"));
        arguments.addAll(sources);
        compile(arguments.toArray(String[]::new));
    }

    /** The first program needs only the dependencies in getting-started.md, and not the optional Chronicle Bytes. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theFirstProgramNeedsOnlyTheDependenciesOfItsPage(boolean isModule, @TempDir Path directory) throws Exception {
        String all = System.getProperty("java.class.path");
        String jars = Arrays.stream(all.split(File.pathSeparator))
                .filter(jar -> jar.matches(".*/(log4j-api|log4j-core|jspecify)-[^/]*"))
                .collect(Collectors.joining(File.pathSeparator));
        String out = directory.resolve("out").toString();
        String program = Path.of("src", "examples", "java", "com", "example", "millrace", "AllReduce.java").toString();
        List<String> run = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
        if (isModule) {
            String descriptor = directory.resolve("descriptor").toString();
            String library = directory.resolve("millrace.jar").toString();
            compile("-d", descriptor, "-p", all, "--patch-module", "org.millrace=target/classes",
                    "src/main/module/module-info.java");
            call("jar", "--create", "--no-compress", "--file", library, "-C", "target/classes", ".", "-C", descriptor,
                    "module-info.class");
            Path module = Files.writeString(directory.resolve("module-info.java"),
                    "module program { requires org.millrace; }");
            String path = library + File.pathSeparator + jars;
            // Without the option -cp, the compiler would use the class path of this JVM.
            compile("-Xlint:all", "-Werror", "-d", out, "-cp", directory.toString(), "-p", path, program,
                    module.toString());
            run.addAll(List.of("--enable-native-access=org.millrace", "-p", out + File.pathSeparator + path, "-m",
                    "program/" + AllReduce.class.getName()));
        } else {
            String path = "target/classes" + File.pathSeparator + jars;
            compile("-Xlint:all", "-Werror", "-d", out, "-cp", path, program);
            run.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp", out + File.pathSeparator + path,
                    AllReduce.class.getName()));
        }
        run.addAll(List.of("file:" + directory.resolve("g"), "0", "1"));
        ProcessBuilder builder = new ProcessBuilder(run).redirectErrorStream(true);
        builder.environment().put("MILLRACE_DEVICE", "host");
        Process rank = builder.start();
        String printed = new String(rank.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(rank.waitFor(30, TimeUnit.SECONDS), printed);
        assertEquals("rank 0 on emulated device 0: element 7 is 7.0\n", printed);
    }

    private static void compile(String... arguments) {
        call("javac", arguments);
    }

    private static void call(String tool, String... arguments) {
        StringWriter said = new StringWriter();
        int status =
                ToolProvider.findFirst(tool).orElseThrow().run(new PrintWriter(said), new PrintWriter(said), arguments);
        assertEquals(0, status, said.toString());
    }

    /**
     * The page shows the whole first program, and the README shows the program's core. Readers copy both texts, so both
     * must equal the source.
     */
    @Test
    void thePagesShowTheFirstProgram() throws Exception {
        String program =
                Files.readString(Path.of("src", "examples", "java", "com", "example", "millrace", "AllReduce.java"));
        assertTrue(
                Files.readString(Path.of("src", "site", "markdown", "getting-started.md"))
                        .contains("```java\n" + program + "```"),
                "getting-started.md does not show AllReduce.java as it is");
        Matcher core = Pattern.compile("(?s)```java\n(.*?)```").matcher(Files.readString(Path.of("README.md")));
        assertTrue(core.find() && program.contains(core.group(1).indent(8)), "README.md shows another program");
    }

    @Test
    void thePageAboutMpiShowsTheProgramThatWasPorted() throws Exception {
        String program = Files.readString(Path.of("src/examples/java/com/example/millrace/Diffusion.java"));
        String page = Files.readString(Path.of("src/site/markdown/coming-from-mpi.md"));
        Matcher core = Pattern.compile("(?s)```java\n(.*?)```").matcher(page);
        assertTrue(core.find() && program.contains(core.group(1).indent(8)), "the page shows another program");
    }

    private static Set<String> printedBy(Program program, String... args) throws Exception {
        PrintStream before = System.out;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        System.setOut(new PrintStream(bytes, true, StandardCharsets.UTF_8));
        try {
            program.main(args);
        } finally {
            System.setOut(before);
        }
        return new TreeSet<>(bytes.toString(StandardCharsets.UTF_8).lines().toList());
    }
}
