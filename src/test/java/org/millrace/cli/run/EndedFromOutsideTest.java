package org.millrace.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.cli.ChildMain;
import org.millrace.cli.Main;
import org.millrace.cli.MappedProvider;
import org.millrace.net.shm.ShmOptions;

/** A run with hanging ranks. The test ends the run from outside, as Ctrl-C does. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class EndedFromOutsideTest {

    /** Way to end a run from outside, given the process of the run and the processes of its ranks. */
    private interface End {
        void of(Process run, List<ProcessHandle> ranks) throws IOException;
    }

    private static void endAndExpectNoProcess(End end) throws Exception {
        endAndExpectNoProcess(end, "--device", MappedProvider.DEVICE, "-e", "8", "-D", "MILLRACE_FAULT=hang");
    }

    private static void endAndExpectNoProcess(End end, String... options) throws Exception {
        String[] arguments = Stream.of(List.of("perf", "all_reduce", "--processes"), List.of(options))
                .flatMap(List::stream)
                .toArray(String[]::new);
        Process process =
                ChildMain.builder(Main.class, arguments).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        List<ProcessHandle> ranks = List.of();
        try (BufferedReader out = process.inputReader()) {
            assertNotNull(ChildMain.readUntil(out, "Using devices"), "the ranks have joined");
            ranks = process.descendants().toList();
            assertEquals(2, ranks.size());
            end.of(process, ranks);
            process.waitFor();
            for (ProcessHandle rank : ranks) {
                rank.onExit().get();
            }
        } finally {
            process.destroyForcibly();
            ranks.forEach(ProcessHandle::destroyForcibly);
        }
    }

    @Test
    void terminationEndsTheRanksAndRemovesTheDirectory() throws Exception {
        long[] pid = {0};
        endAndExpectNoProcess((process, ranks) -> {
            pid[0] = process.pid();
            assertFalse(left(pid[0]).isEmpty(), "there is a directory while it runs");
            process.destroy();
        });
        assertEquals(List.of(), left(pid[0]));
    }

    @Test
    void ranksEndEvenIfTheirParentIsKilled() throws Exception {
        long[] pid = {0};
        endAndExpectNoProcess((process, ranks) -> {
            pid[0] = process.pid();
            assertFalse(left(pid[0]).isEmpty(), "there is a directory while it runs");
            process.destroyForcibly();
        });
        do { // a run of another test may be deleting the files
            new RunScope().close();
        } while (!left(pid[0]).isEmpty());
    }

    /** A terminal's Ctrl-C reaches every process of the run, so no rank has time to close its resources. */
    @Test
    void ranksThatAreInterruptedLeaveNoSharedFiles() throws Exception {
        List<Long> pids = new ArrayList<>();
        endAndExpectNoProcess((process, ranks) -> {
            for (ProcessHandle rank : ranks) {
                pids.add(rank.pid());
                assertFalse(sharedFiles(rank.pid()).isEmpty(), "there are shared files while it runs");
            }
            ranks.forEach(ProcessHandle::destroy);
            process.destroy();
        }, "--device", "host", "-b", "1M", "-e", "64M", "-n", "1000000");
        for (long pid : pids) {
            assertEquals(List.of(), sharedFiles(pid));
        }
    }

    /** Returns a process's shared files, except for its trace. A trace is kept for an hour for inspection. */
    private static List<Path> sharedFiles(long pid) throws IOException {
        try (Stream<Path> files = Files.list(ShmOptions.defaults().directory())) {
            return files.filter(
                    file -> file.getFileName().toString().matches("millrace-[0-9a-f]+-" + pid + "-.*(?<!\\.trace)"))
                    .toList();
        }
    }

    private static List<Path> left(long pid) {
        try (Stream<Path> files = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
            return files.filter(file -> file.getFileName().toString().startsWith("millrace-perf-" + pid + "-"))
                    .toList();
        } catch (IOException failure) {
            throw new AssertionError(failure);
        }
    }
}
