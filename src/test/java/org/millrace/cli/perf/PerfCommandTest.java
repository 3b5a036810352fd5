package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.cli.MappedProvider;
import org.millrace.cli.Run;

/** The whole command, with ranks as threads and as processes, over {@link MappedProvider}. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class PerfCommandTest {

    private static final String THREADS = "";
    private static final String PROCESSES = "--processes";

    @TempDir
    private Path directory;

    private static Run perf(String how, String... more) {
        List<String> arguments = new ArrayList<>(
                List.of("perf", "all_reduce", "--device", MappedProvider.DEVICE, "-n", "3", "--deadline", "60s"));
        arguments.addAll(Arrays.asList(more));
        if (!how.isEmpty()) {
            arguments.add(how);
        }
        return Run.of(arguments.toArray(String[]::new));
    }

    @AfterEach
    void nothingIsLeftBehind() throws IOException {
        assertEquals(List.of(),
                ProcessHandle.current().descendants().filter(ProcessHandle::isAlive).map(ProcessHandle::info).toList());
        String prefix = "millrace-perf-" + ProcessHandle.current().pid() + "-";
        try (Stream<Path> files = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
            assertEquals(List.of(), files.filter(file -> file.getFileName().toString().startsWith(prefix)).toList());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {THREADS, PROCESSES})
    void rightResultsGiveATableAndStatus0(String how) {
        Run run = perf(how, "-b", "8", "-e", "1000", "-f", "5", "-r", "3", "-t", "float,int32");
        assertEquals(0, run.status(), run.toString());
        assertEquals(List.of("8", "40", "200", "1000", "8", "40", "200", "1000"),
                run.rows().stream().map(row -> row[0]).toList());
        for (String[] row : run.rows()) {
            assertEquals(13, row.length, run.toString());
            assertTrue(Double.parseDouble(row[5]) > 0 && Double.parseDouble(row[9]) > 0, run.toString());
            assertEquals("0 0", row[8] + " " + row[12], run.toString());
        }
        assertTrue(run.out().contains("# wrong values: 0\n# Avg bus bandwidth : "), run.toString());
        assertTrue(run.out().contains("#  Rank  2 Pid"), run.toString());
        String ours = "Pid " + String.format("%6d", ProcessHandle.current().pid());
        assertEquals(how.equals(THREADS) ? 3 : 0, run.out().lines().filter(line -> line.contains(ours)).count(),
                "ranks are threads of this process, or none of them is: " + run);
        assertEquals("", run.err(), run.toString());
    }

    @ParameterizedTest
    @ValueSource(strings = {THREADS, PROCESSES})
    void wrongElementsAreCountedAndGiveStatus1(String how) {
        Run run = perf(how, "-b", "8", "-e", "16", "-D", "MILLRACE_FAULT=wrong");
        assertEquals(1, run.status(), run.toString());
        // The provider falsifies one element of every operation. With a planted fault every operation is checked,
        // including the operations before the first line of the table.
        List<Long> wrong = run.rows()
                .stream()
                .flatMap(row -> java.util.stream.Stream.of(Long.valueOf(row[8]), Long.valueOf(row[12])))
                .toList();
        assertTrue(wrong.size() == 4 && wrong.stream().allMatch(each -> each > 0), run.toString());
        assertTrue(run.out().contains("# wrong values: " + wrong.stream().mapToLong(Long::longValue).sum()),
                run.toString());
    }

    @Test
    void profileSaysForHowLongKernelsRan() {
        Run run = Run.of("perf", "all_reduce", "-b", "64", "-e", "64", "-n", "20", "-w", "5", "-r", "2", "--profile",
                "-D", "MILLRACE_DEVICE=host");
        assertEquals(0, run.status(), run::toString);
        for (int rank = 0; rank < 2; rank++) {
            String begins = "#   rank " + rank + ": kernels ran for ";
            assertEquals(1, run.out().lines().filter(line -> line.startsWith(begins)).count(), run::toString);
        }
    }

    @Test
    void nobodyLooksIfTheUserSaysSo() {
        Run run = perf(THREADS, "-e", "8", "-c", "0", "-D", "MILLRACE_FAULT=wrong");
        assertEquals(0, run.status(), run.toString());
        assertEquals("N/A", run.rows().getFirst()[8]);
        assertTrue(run.out().contains("# wrong values: not checked"), run.toString());
    }

    @ParameterizedTest
    @ValueSource(strings = {THREADS, PROCESSES})
    void aRankThatThrowsIsNamedAndEndsTheRun(String how) {
        Run run = perf(how, "-e", "8", "-r", "3", "-D", "MILLRACE_FAULT=throw");
        assertEquals(1, run.status(), run.toString());
        assertTrue(run.err().contains("millrace: rank 1: the planted failure"), run.toString());
        assertFalse(run.err().contains("\tat "), "no stack trace: " + run);
        assertTrue(
                perf(how, "-e", "8", "-D", "MILLRACE_FAULT=throw", "--stacktrace").err().contains("\tat org.millrace"),
                "stack trace on demand");
    }

    /**
     * Before the deadline, the ranks must reach the operation that hangs. On a busy machine two processes may start too
     * slowly. The test then runs again with a longer deadline, at most twice.
     */
    @ParameterizedTest
    @ValueSource(strings = {THREADS, PROCESSES})
    void aRankThatHangsEndsAtTheDeadline(String how) {
        Run run = hang(how, how.equals(THREADS) ? "1s" : "2s");
        for (String more : List.of("8s", "40s")) {
            if (run.err().contains("(--deadline)") && !run.err().contains("rank 0 is at 8 B float sum, rank 1 is at")) {
                run = hang(how, more);
            }
        }
        assertEquals(1, run.status(), run.toString());
        String where = "rank 0 is at 8 B float sum, rank 1 is at 8 B float sum";
        assertTrue(run.err().matches("(?s).*not finished after \\d+s \\(--deadline\\): " + where + "\\R.*"),
                run.toString());
    }

    private static Run hang(String how, String deadline) {
        // This test does not use perf(), because that method sets another --deadline.
        List<String> arguments = new ArrayList<>(List.of("perf", "all_reduce", "--device", MappedProvider.DEVICE, "-e",
                "8", "-D", "MILLRACE_FAULT=hang"));
        arguments.addAll(List.of("--deadline", deadline));
        if (!how.isEmpty()) {
            arguments.add(how);
        }
        return Run.of(arguments.toArray(String[]::new));
    }

    @Test
    void aProcessThatDiesIsTheFirstThatIsNamed() {
        Run run = perf(PROCESSES, "-e", "8", "-D", "MILLRACE_FAULT=die");
        assertEquals(1, run.status(), run.toString());
        assertTrue(run.err().startsWith("millrace: rank 1: its process (pid "), run.toString());
        assertTrue(run.err().contains("died: exit status 7"), run.toString());
    }

    /**
     * A planted fault that occurred on no rank is an error. If the fault occurred on at least one rank, the run may
     * succeed.
     */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                    "''|cut:frame=2,rail=1|1|the planted fault cut:frame=2,rail=1 (MILLRACE_FAULT) did not "
                            + "happen|that has a rail 1",
                    "''|delay:frame=1,polls=3|0|''|''",
                    "--processes|delay:frame=1,polls=3;delay:frame=999999999,polls=3|1"
                            + "|the planted fault delay:frame=999999999,polls=3 (MILLRACE_FAULT) did not happen"
                            + "|frame 999999999 or a later one"})
    void aFaultThatDidNotHappenIsSaid(String how, String fault, int status, String said, String why) {
        List<String> arguments = new ArrayList<>(List.of("perf", "broadcast", "--device", "host", "-b", "8", "-e", "8",
                "-n", "2", "-w", "1", "--deadline", "60s", "-D", "MILLRACE_FAULT=" + fault));
        if (!how.isEmpty()) {
            arguments.add(how);
        }
        Run run = Run.of(arguments.toArray(String[]::new));
        assertEquals(status, run.status(), run.toString());
        assertTrue(run.err().contains(said) && run.err().contains(why), run.toString());
        assertEquals(status, run.err().lines().filter(line -> line.contains("did not happen")).count(), run.toString());
        assertTrue(status == 1 || run.err().isEmpty(), run.toString());
        assertTrue(run.out().contains("# wrong values: 0"), run.toString());
    }

    @Test
    void resultsAreWrittenForProgramsToo() throws IOException {
        Path file = directory.resolve("results.json");
        Run run = perf(THREADS, "-b", "8", "-e", "16", "--seed", "77", "--json", file.toString(), "-D",
                "MILLRACE_SECRET=swordfish");
        assertEquals(0, run.status(), run.toString());
        String json = Files.readString(file);
        for (String part : List.of("\"seed\": 77", "\"size\": 16", "\"redop\": \"sum\"", "\"complete\": true",
                "\"wrong\": 0", "\"cores\":", "\"NCCL_BUFFSIZE\": {", "\"failures\": []")) {
            assertTrue(json.contains(part), part + " in " + json);
        }
        assertFalse((json + run).contains("swordfish"));
        perf(THREADS, "-e", "8", "-D", "MILLRACE_FAULT=throw", "--json", file.toString());
        assertTrue(Files.readString(file).contains("rank 1: the planted failure"));
    }

    @ParameterizedTest
    @ValueSource(strings = {THREADS, PROCESSES})
    void theTableSaysWhichWayDataGoes(String how) throws IOException {
        Path file = directory.resolve("results.json");
        List<String> arguments = new ArrayList<>(List.of("perf", "all_reduce", "--device", "host", "--net", "socket",
                "-r", "2", "-b", "8", "-e", "256K", "-f", "32768", "-n", "3", "-D", "NCCL_ALGO=ring", "-D",
                "MILLRACE_PTR_THRESHOLD=64K", "--deadline", "60s", "--json", file.toString()));
        if (!how.isEmpty()) {
            arguments.add(how);
        }
        Run run = Run.of(arguments.toArray(String[]::new));
        assertEquals(0, run.status(), run.toString());
        List<String> lines = run.out().lines().toList();
        List<String> routes = lines.stream().filter(line -> line.startsWith("# route: ")).toList();
        assertEquals(List.of("# route: ring, Simple, NORMAL, over NET socket",
                "# route: ring, Simple, PTR, over NET socket"), routes, run.toString());
        assertTrue(
                lines.indexOf(routes.getFirst()) < lines
                        .indexOf(lines.stream().filter(line -> line.contains("(elements)")).findFirst().orElseThrow()),
                run.toString());
        String json = Files.readString(file);
        assertTrue(json.replaceAll("\\s+", " ")
                .matches(".*\"route\": \\{ ?\"algorithm\": \"ring\", \"protocol\": \"[LS]\\w+\", \"mode\": "
                        + "\"NORMAL\", \"transports\": \\[ ?\"NET socket\" " + "?\\] ?\\}.*"),
                json);
    }

    @Test
    void whereTheDeviceDoesNotTellThereIsNoRoute() throws IOException {
        Path file = directory.resolve("results.json");
        assertFalse(perf(THREADS, "-e", "8", "--json", file.toString()).out().contains("# route"));
        assertTrue(Files.readString(file).contains("\"route\": null"));
    }

    @Test
    void theSeedMakesTheData() {
        assertTrue(perf(THREADS, "-e", "8", "--seed", "77").out().contains("seed: 77"));
    }
}
