package org.millrace.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.millrace.AllReduce;
import java.io.BufferedReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.cli.ChildMain;
import org.millrace.cli.Main;

/** {@code millrace run}, as a user starts it. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class RunCommandTest {

    @TempDir
    private Path directory;

    private static Process run(String... arguments) throws Exception {
        List<String> all = new ArrayList<>(List.of("run"));
        all.addAll(List.of(arguments));
        return ChildMain.builder(Main.class, all.toArray(String[]::new)).redirectErrorStream(true).start();
    }

    private static Set<String> lines(Process run) throws Exception {
        return new String(run.getInputStream().readAllBytes(), StandardCharsets.UTF_8).lines()
                .collect(Collectors.toSet());
    }

    @Test
    void anExampleRunsWithVariablesOfAnyText() throws Exception {
        Process run = run("-n", "2", "-D", "MILLRACE_DEVICE=host", "-x", "GREETING=it's 2 \"o'clock\"", "--", "sh",
                "-c", "echo \"$GREETING, $LOCAL_RANK of $LOCAL_WORLD_SIZE\"; exec \"$@\"", "sh",
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path"),
                AllReduce.class.getName());
        assertEquals(Set.of("[rank 0] it's 2 \"o'clock\", 0 of 2", "[rank 1] it's 2 \"o'clock\", 1 of 2",
                "[rank 0] rank 0 on emulated device 0: element 7 is 15.0",
                "[rank 1] rank 1 on emulated device 1: element 7 is 15.0"), lines(run));
        assertEquals(0, run.waitFor());
    }

    /** A rank can join although it cannot use the directory of the run, for example in a container. */
    @Test
    void ranksJoinWithoutTheDirectoryOfTheRun() throws Exception {
        Process run =
                run("-n", "2", "-D", "MILLRACE_DEVICE=host", "-x", "MILLRACE_RUN_DIR=" + directory.resolve("none"),
                        "--", Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-cp",
                        System.getProperty("java.class.path"), AllReduce.class.getName());
        Set<String> lines = lines(run);
        assertEquals(0, run.waitFor(), lines.toString());
    }

    /** Rank 1 fails. Rank 0 ends on request. Rank 2 and its child process must be killed. */
    @Test
    void oneThatFailsEndsAll() throws Exception {
        Path left = directory.resolve("left");
        Process run = run("-n", "3", "--grace", "1s", "--", "sh", "-c", """
                case $RANK in
                0) trap 'echo ends; exit 0' TERM; sleep 300 & wait;;
                1) while [ ! -s %s ]; do sleep 0.05; done; echo fails; exit 7;;
                2) trap '' TERM; sh -c 'echo $$ > %s; while :; do sleep 1; done' & wait;;
                esac""".formatted(left, left));
        Set<String> lines = lines(run);
        assertEquals(7, run.waitFor(), lines.toString());
        assertTrue(lines.containsAll(Set.of("[rank 1] fails", "[rank 0] ends")), lines.toString());
        assertTrue(
                lines.stream()
                        .anyMatch(line -> line
                                .matches("millrace: rank 1: its process \\(pid \\d+\\) ended: exit status 7")),
                lines.toString());
        assertGone(Long.parseLong(Files.readString(left).strip()));
    }

    @Test
    void aSignalIsPassedOnAndEndsTheRun() throws Exception {
        Process run = run("-n", "2", "--", "sh", "-c",
                "trap 'echo saved; exit 143' TERM; echo runs; while :; do sleep 0.05; done");
        try (BufferedReader out = run.inputReader()) {
            assertNotNull(ChildMain.readUntil(out, "runs"));
            assertNotNull(ChildMain.readUntil(out, "runs"));
            run.toHandle().destroy(); // unlike this call, Process.destroy() would also close the output stream
            Set<String> lines = out.lines().collect(Collectors.toSet());
            assertEquals(143, run.waitFor(), lines.toString());
            assertTrue(lines.containsAll(Set.of("[rank 0] saved", "[rank 1] saved",
                    "millrace: SIGTERM was passed on, and the ranks have ended")), lines.toString());
        }
    }

    @Test
    void nothingOutlivesALauncherThatIsKilled() throws Exception {
        Process run = run("-n", "2", "--grace", "1s", "--", "sh", "-c", "sleep 300 & echo pid $!; wait");
        List<Long> pids = new ArrayList<>();
        try (BufferedReader out = run.inputReader()) {
            for (int rank = 0; rank < 2; rank++) {
                pids.add(Long.valueOf(ChildMain.readUntil(out, "pid").replaceFirst(".*pid ", "")));
            }
            run.toHandle().destroyForcibly();
        }
        for (long pid : pids) {
            assertGone(pid);
        }
    }

    /**
     * Hosts of a run have numbered names. A link identifies a pair of hosts by two such names. Other names are refused.
     */
    @Test
    void hostsOfARunAreNumbered() throws Exception {
        Process run = run("-n", "3", "--ranks-per-host", "2", "--link", "host0-host1: delay=1ms", "--", "sh", "-c",
                "echo $NCCL_HOSTID");
        assertEquals(Set.of("[rank 0] host0", "[rank 1] host0", "[rank 2] host1"), lines(run));
        Process refused = run("-n", "2", "--link", "host0-host2: delay=1ms", "--", "true");
        Set<String> lines = lines(refused);
        assertTrue(refused.waitFor() != 0, lines.toString());
        assertTrue(lines.toString().contains("'host0-host2' is no pair of this run's hosts, which are host0, host1"),
                lines.toString());
    }

    /** Rank 0 is killed, and rank 1 fails. Rank 2 learns of both events and completes. */
    @Test
    void aRunContinuesWithoutLostRanks() throws Exception {
        Path left = directory.resolve("left");
        String command = """
                test -d "$MILLRACE_RUN_DIR" || exit 9
                case $RANK in
                0) echo >> %1$s; kill -KILL $$;;
                1) echo >> %1$s; exit 7;;
                2) while [ "$(cat %1$s | wc -l)" -lt 2 ]; do sleep 0.05; done; sleep 0.3; echo done; exit $END;;
                esac""".formatted(left);
        Files.createFile(left);
        Process run = run("-n", "3", "--keep-going", "-x", "END=0", "--", "sh", "-c", command);
        Set<String> lines = lines(run);
        assertEquals(0, run.waitFor(), lines.toString());
        assertTrue(lines.contains("[rank 2] done"), lines.toString());
        assertTrue(lines.stream()
                .anyMatch(line -> line.matches(
                        "millrace: rank 1: its process \\(pid \\d+\\) ended: exit status 7; the other ranks continue")),
                lines.toString());
        run = run("-n", "3", "--keep-going", "-x", "END=5", "--", "sh", "-c", command);
        lines = lines(run);
        assertTrue(Set.of(7, 137).contains(run.waitFor()), "the status of the first failed rank: " + lines);
    }

    /** The deadline ends the run, so the run has failed. The exit status of rank 1 does not matter. */
    @ParameterizedTest
    @ValueSource(ints = {0, 5})
    void aRunThatContinuesHasTheStatusOfItsDeadline(int end) throws Exception {
        Process run = run("-n", "3", "--keep-going", "--deadline", "4s", "--", "sh", "-c",
                "case $RANK in 0) exit 7;; 1) exit " + end + ";; esac; sleep 300");
        Set<String> lines = lines(run);
        assertEquals(1, run.waitFor(), lines.toString());
        assertTrue(lines.contains("millrace: not finished after 4s (--deadline)"), lines.toString());
        assertTrue(lines.stream().anyMatch(line -> line.endsWith("exit status 7; the other ranks continue")),
                lines.toString());
    }

    /**
     * The reader of the output may end first, as in {@code millrace run --keep-going … | head -1}. SIGPIPE must then
     * end no rank.
     */
    @ParameterizedTest
    @ValueSource(ints = {0, 5})
    void ranksThatKeepGoingOutliveTheReaderOfTheirOutput(int status) throws Exception {
        Path closed = directory.resolve("closed");
        String command = """
                echo begins; while [ ! -e %1$s ]; do sleep 0.05; done
                i=0; while [ $i -lt 20000 ]; do echo line; i=$((i + 1)); done; touch %1$s-$RANK
                exit %2$d""".formatted(closed, status);
        Process run =
                ChildMain.builder(Main.class, "run", "-n", "2", "--keep-going", "--", "sh", "-c", command).start();
        try (BufferedReader out = run.inputReader()) {
            assertNotNull(ChildMain.readUntil(out, "begins"));
            assertNotNull(ChildMain.readUntil(out, "begins"));
        }
        Files.createFile(closed);
        String said = new String(run.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(status, run.waitFor(), said);
        assertTrue(
                said.contains("millrace: rank 1: what it writes cannot be passed on: Broken pipe; the rank continues"),
                said);
        assertTrue(Files.exists(Path.of(closed + "-0")) && Files.exists(Path.of(closed + "-1")), said);
    }

    @Test
    void aCommandThatIsNotThereIsNamed() throws Exception {
        Process run = run("-n", "1", "--", "no-such-command");
        Set<String> lines = lines(run);
        assertEquals(127, run.waitFor(), lines.toString());
        assertTrue(lines.stream().anyMatch(line -> line.startsWith("[rank 0] there is no command 'no-such-command'")),
                lines.toString());
        assertFalse(lines.toString().contains("\tat "), lines.toString());
    }

    private static void assertGone(long pid) throws Exception {
        var process = ProcessHandle.of(pid);
        if (process.isPresent()) {
            process.get().onExit().get(30, TimeUnit.SECONDS);
        }
    }
}
