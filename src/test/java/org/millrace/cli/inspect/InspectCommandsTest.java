package org.millrace.cli.inspect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.cli.Run;
import org.millrace.plugin.HostProgram;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedLink;
import org.millrace.trace.TracedProcess;

/**
 * Two processes whose connections Millrace has taken over. The commands inspect the processes from outside, first while
 * they run and then after they are killed.
 */
@Tag("slow")
class InspectCommandsTest {

    private static final int CHANNELS = 2;
    private static final long ENDLESS = 1_000_000_000L;
    private static final long DEADLINE_NANOS = TimeUnit.SECONDS.toNanos(90);

    @TempDir
    private Path directory;

    private Process host;

    @BeforeEach
    void start() throws Exception {
        host = HostProgram.compile("takeover_host", "-DNET_VERSION=11")
                .withNetwork("shm")
                .with("MILLRACE_TRACE_DIRECTORY", directory.toString())
                .start(directory.resolve("output"), HostProgram.library(), "processes", CHANNELS, ENDLESS, 15, "small");
    }

    @AfterEach
    void end() throws Exception {
        kill();
    }

    private void kill() throws Exception {
        List<ProcessHandle> all = host.descendants().toList();
        host.destroyForcibly().waitFor();
        for (ProcessHandle child : all) {
            child.destroyForcibly();
            child.onExit().get(30, TimeUnit.SECONDS);
        }
    }

    private List<TracedProcess> await(Predicate<List<TracedProcess>> enough) throws IOException {
        long begun = System.nanoTime();
        while (true) {
            List<TracedProcess> read = TraceReader.readAll(directory, (file, e) -> {});
            if (enough.test(read)) {
                return read;
            }
            assertTrue(host.isAlive() && System.nanoTime() - begun < DEADLINE_NANOS,
                    () -> "not seen: " + Run.of("ps", "--directory", directory.toString()) + output());
            Thread.yield();
        }
    }

    private String output() {
        try {
            return Files.readString(directory.resolve("output"));
        } catch (IOException e) {
            return e.toString();
        }
    }

    private static boolean bothMove(List<TracedProcess> processes) {
        return processes.size() == 2 && TracedLink.of(processes)
                .stream()
                .filter(link -> link.other() != null && !link.connection().identity().name().contains("warm-up")
                        && link.connection().frames() > 1000)
                .count() == 4L * CHANNELS;
    }

    @Test
    void whatProcessesDoIsSeenWhileTheyRunAndOnceTheyAreKilled() throws Exception {
        List<TracedProcess> running = await(InspectCommandsTest::bothMove);
        for (TracedLink link : TracedLink.of(running)) {
            assertNotNull(link.other(), link::toString);
            assertNotEquals(link.process().identity(), link.other().process().identity(), "the peer's process");
            assertTrue(link.channel() >= 0 && link.channel() < CHANNELS, link::toString);
            assertTrue(link.connection().bytes() > 0 && !link.connection().last().isEmpty(), link::toString);
        }
        String at = directory.toString();
        Run ps = Run.of("ps", "--directory", at);
        assertEquals(2, ps.out().lines().filter(line -> line.contains(" running ")).count(), ps::toString);
        for (int width : new int[] {80, 160}) {
            Run top = Run.of("top", "--directory", at, "--once", "--interval", "0.2", "--columns",
                    Integer.toString(width));
            assertEquals(0, top.status(), top::toString);
            assertTrue(top.out().lines().allMatch(line -> line.length() <= width), top::toString);
            assertEquals(4L * CHANNELS, top.out().lines().filter(line -> line.contains(" shm ")).count(),
                    top::toString);
        }
        long one = running.getFirst().identity().pid();
        Run dump = Run.of("dump", "--directory", at, Long.toString(one));
        assertTrue(dump.out().contains("\"pid\": " + one) && dump.out().contains("\"step_done\""), dump::toString);
        Run metrics = Run.of("metrics", "--directory", at);
        assertTrue(metrics.out().contains("millrace_connection_bytes_total{pid=\"" + one), metrics::toString);
        assertTrue(metrics.out().endsWith("# EOF\n"), metrics::toString);

        kill();
        List<TracedProcess> dead = TraceReader.readAll(directory, (file, e) -> {});
        assertEquals(2, dead.size(), "the killed are still to be read");
        for (TracedLink link : TracedLink.of(dead)) {
            assertTrue(!link.process().alive() && link.other() != null && link.connection().frames() > 1000,
                    link::toString);
        }
        Run living = Run.of("ps", "--directory", at);
        assertEquals("... and 2 that ended (--all)", living.out().lines().toList().getLast(), living::toString);
        assertEquals(0, living.out().lines().filter(line -> line.matches(".*\\b(dead|failed)\\b.*")).count(),
                living::toString);
        Run top = Run.of("top", "--directory", at, "--once", "--interval", "0.05");
        assertTrue(top.out().startsWith("millrace top: 0 processes, 0 connections"), top::toString);
        Run after = Run.of("ps", "--all", "--directory", at);
        assertEquals(2, after.out().lines().filter(line -> line.matches(".*\\b(dead|failed)\\b.*")).count(),
                after::toString);
        Run none = Run.of("dump", "--directory", at, "1");
        assertEquals(1, none.status(), none::toString);
        assertTrue(none.err().contains("none of the processes [1] has a trace in " + at), none::toString);
    }
}
