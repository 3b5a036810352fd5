package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.file.OwnNamespace;
import org.millrace.plugin.HostProgram;

/**
 * Environments in which the program can create no file at all, or only in {@code /dev/shm}. A container with a
 * read-only root is such an environment.
 */
@Timeout(180)
@Tag("slow")
@Tag("root")
class ReadOnlyTest {

    private static final String ROOT =
            "mount --bind /tmp /tmp; mount -o remount,bind,ro /tmp; mount -o remount,bind,ro /";
    private static final String MEMORY = "mount -o remount,ro /dev/shm";
    private static final String NO_MEMORY = "mount -t tmpfs none /dev; for one in null:3 zero:5 random:8 urandom:9; do "
            + "mknod -m 666 /dev/${one%:*} c 1 ${one#*:}; done";

    @BeforeEach
    void possible() throws Exception {
        OwnNamespace.assumePossible();
    }

    /** Returns the text that a program writes to both output streams. */
    private static String run(int status, List<String> starter, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(starter);
        command.addAll(ChildMain.builder(Main.class, arguments).command());
        Process child = new ProcessBuilder(command).redirectErrorStream(true).start();
        String text = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(status, child.waitFor(), text);
        return text;
    }

    private static HostProgram.Outcome host(String network, String memory) throws Exception {
        return HostProgram.compile("loss_host", "-DNET_VERSION=11")
                .withNetwork(network)
                .startedBy(OwnNamespace.after(ROOT, memory))
                .run(HostProgram.library(), "exit", 2);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"auto|" + MEMORY, "auto|" + NO_MEMORY, "socket|" + MEMORY, "socket|" + NO_MEMORY,
                    "ucx tcp|" + MEMORY})
    void thePluginRunsWithoutATraceAndOverTcp(String network, String memory) throws Exception {
        var outcome = host(network, memory);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(2, outcome.count("there is no trace of this process"), outcome.output());
        assertEquals(network.equals("auto") ? 2 : 0, outcome.count("no shared memory, TCP instead: "),
                outcome.output());
        assertEquals(network.equals("auto") ? 2 : 0, outcome.warnings().size(), outcome.output());
        assertEquals(2, outcome.count("ended with status 0"), outcome.output());
    }

    /** The user has requested shared memory, but the program can create no file for shared memory. */
    @Test
    void sharedMemoryAloneIsRefusedWithWhatToDo() throws Exception {
        var outcome = host("shm", MEMORY);
        assertEquals(2,
                outcome.warnings()
                        .stream()
                        .filter(line -> line.contains("Read-only file system; have memory mounted at /dev/shm"))
                        .count(),
                outcome.output());
        assertEquals(2, outcome.count("ended with status 1"), outcome.output());
    }

    /** In this environment UCX 1.13 creates no worker, and still reports success. */
    @Test
    void ucxWithoutATransportIsALossAndNoCrash() throws Exception {
        var outcome = host("ucx", MEMORY);
        assertEquals(0, outcome.count("SIGSEGV"), outcome.output());
        assertTrue(outcome.warnings().stream().anyMatch(line -> line.contains("UCX cannot make a worker")),
                outcome.output());
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "auto", "socket"})
    void memoryServesAllByItself(String network) throws Exception {
        var outcome = host(network, "");
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertEquals(0, outcome.count("there is no trace of this process"), outcome.output());
        String ranks = run(0, OwnNamespace.after(ROOT), "perf", "all_reduce", "-b", "64K", "-e", "64K", "--processes",
                "-n", "2", "-r", "2", "-D", "MILLRACE_NET=" + network);
        assertTrue(ranks.contains("# wrong values: 0"), ranks);
    }

    @Test
    void aRunThatCannotMeetSaysWhere() throws Exception {
        String text = run(1, OwnNamespace.after(ROOT, MEMORY), "perf", "all_reduce", "-b", "8", "-e", "8");
        assertTrue(text.contains("no directory for the ranks to meet can be made in /tmp"), text);
        assertFalse(text.contains("\tat "), text);
    }

    @Test
    void doctorSaysWhatCannotBeWrittenAndWhatCannotBeSeen() throws Exception {
        String text = run(1, OwnNamespace.after(ROOT, MEMORY, "umount /proc"), "doctor").replaceAll("\\s+", " ");
        assertTrue(text.contains(
                "shared memory UNUSABLE /dev/shm cannot be written by this user > chmod 1777 /dev/shm; where its file system is read-only mount memory"),
                text);
        assertTrue(text.contains(
                "temporary files UNUSABLE /tmp cannot be written by this user > choose another with -Djava.io.tmpdir"),
                text);
        assertTrue(
                text.contains("processes UNUSABLE there is no /proc, or it is that of another PID namespace > mount"),
                text);
    }
}
