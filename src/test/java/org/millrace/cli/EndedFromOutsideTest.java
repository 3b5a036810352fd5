package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.shm.ShmOptions;

/** A run whose ranks hang, and that is ended from outside, as by Ctrl-C. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class EndedFromOutsideTest {

    private void endAndExpectNoProcess(Consumer<Process> end) throws Exception {
        Process process =
                ChildMain
                        .builder(Main.class, "perf", "all_reduce", "--device", MappedProvider.DEVICE, "-e", "8", "-D",
                                "MILLRACE_FAULT=hang", "--processes")
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
        List<ProcessHandle> ranks = List.of();
        try (BufferedReader out = process.inputReader()) {
            assertNotNull(ChildMain.readUntil(out, "Using devices"), "the ranks have joined");
            ranks = process.descendants().toList();
            assertEquals(2, ranks.size());
            end.accept(process);
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
        endAndExpectNoProcess(process -> {
            pid[0] = process.pid();
            assertFalse(left(pid[0]).isEmpty(), "there is a directory while it runs");
            process.destroy();
        });
        assertEquals(List.of(), left(pid[0]));
    }

    @Test
    void ranksEndEvenIfTheirParentIsKilled() throws Exception {
        long[] pid = {0};
        endAndExpectNoProcess(process -> {
            pid[0] = process.pid();
            assertFalse(left(pid[0]).isEmpty(), "there is a directory while it runs");
            process.destroyForcibly();
        });
        do { // another run, of another test, may be doing it
            new RunScope().close();
        } while (!left(pid[0]).isEmpty());
    }

    /** A terminal's Ctrl-C goes to every process of the run: no rank has time to close anything. */
    @Test
    void ranksThatAreInterruptedLeaveNoSharedFiles() throws Exception {
        Process process =
                ChildMain
                        .builder(Main.class, "perf", "all_reduce", "--device", "host", "-b", "1M", "-e", "64M", "-n",
                                "1000000", "--processes")
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
        List<ProcessHandle> ranks = List.of();
        try (BufferedReader out = process.inputReader()) {
            assertNotNull(ChildMain.readUntil(out, "Using devices"), "the ranks have joined");
            ranks = process.descendants().toList();
            assertEquals(2, ranks.size());
            for (ProcessHandle rank : ranks) {
                assertFalse(sharedFiles(rank.pid()).isEmpty(), "there are shared files while it runs");
            }
            ranks.forEach(ProcessHandle::destroy);
            process.destroy();
            process.waitFor();
            for (ProcessHandle rank : ranks) {
                rank.onExit().get();
                assertEquals(List.of(), sharedFiles(rank.pid()));
            }
        } finally {
            process.destroyForcibly();
            ranks.forEach(ProcessHandle::destroyForcibly);
        }
    }

    /** Without its trace, which is kept for an hour, to be looked at. */
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
