package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.shm.SingleCopy;
import org.millrace.plugin.HostProgram;
import org.millrace.plugin.path.DataPath;

/**
 * The end of communicators after a takeover of their connections. When the host deregisters a connection's first
 * buffer, it makes all memory of that connection inaccessible. A thread that then accesses the memory crashes.
 */
@Tag("slow")
class TakeoverTeardownTest {

    private static final int CHANNELS = 4;
    /** Number of channels in a teardown. The teardown's duration shows whether the channels wait in sequence. */
    private static final int STUCK_CHANNELS = 8;
    private static final long EACH_WAITING_MILLIS = STUCK_CHANNELS * new DataPath.DrainTimeout().remaining().toMillis();
    /**
     * Number of cycles after which open resources are counted. A second count after more cycles is compared with the
     * first count.
     */
    private static final int EARLY_CYCLES = 20;
    private static final int CYCLES = 40;

    /** Shared memory with single copy: the data stays in its slot until the peer has read it. */
    private static final String IN_PLACE = "shm in place";

    private static HostProgram host(String network) throws Exception {
        return HostProgram.compile("teardown_host", "-DNET_VERSION=11")
                .withNetwork(network)
                .with("MILLRACE_SHM_SINGLE_COPY", network.equals(IN_PLACE) ? "1" : "0")
                .with("MILLRACE_ON_LOSS", "report"); // a rank may need longer to end than the grace period after a loss
    }

    private static HostProgram.Outcome end(String way, String network, int channels) throws Exception {
        var outcome = host(network).run(HostProgram.library(), way, channels);
        assertEquals(0, outcome.exit(), outcome.output());
        return outcome;
    }

    private static int number(HostProgram.Outcome outcome, String pattern) {
        return Integer.parseInt(text(outcome, pattern));
    }

    private static String text(HostProgram.Outcome outcome, String pattern) {
        return Pattern.compile(pattern)
                .matcher(outcome.output())
                .results()
                .findFirst()
                .map(found -> found.group(1))
                .orElseThrow(() -> new AssertionError("no " + pattern + " in\n" + outcome.output()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"socket", "shm", IN_PLACE, "ucx"})
    void whatWasPostedBeforeTheEndArrives(String network) throws Exception {
        assumeTrue(!network.equals(IN_PLACE) || SingleCopy.isPossible(), SingleCopy::describe);
        var outcome = end("drain", network, CHANNELS);
        assertTrue(number(outcome, "(\\d+) steps were not sent yet") > 0, outcome.output());
        assertEquals(text(outcome, "rank 0 sent: (.*)"), text(outcome, "rank 1 received: (.*)"));
        assertEquals(List.of(), outcome.warnings());
    }

    @ParameterizedTest
    @CsvSource({"22707, drain, socket", "22707, abort, shm", "22803, runaway, shm", "23007, together, shm",
            "23007, kill, socket"})
    void rcclEndsAsNcclDoes(int release, String way, String network) throws Exception {
        rccl(release, way, network);
    }

    @ParameterizedTest
    @Tag("nightly")
    @CsvSource({"22803, drain, shm", "23007, drain, socket", "22803, abort, socket", "23007, runaway, socket",
            "22803, kill, shm"})
    void moreReleasesOfRcclEndAsNcclDoes(int release, String way, String network) throws Exception {
        rccl(release, way, network);
    }

    private static void rccl(int release, String way, String network) throws Exception {
        var outcome = HostProgram.compileRccl("teardown_host", release, 64, "-DNET_VERSION=11")
                .withNetwork(network)
                .with("MILLRACE_SHM_SINGLE_COPY", "0")
                .with("MILLRACE_ON_LOSS", "report")
                .with("MILLRACE_RECONNECT_DEADLINE", way.equals("kill") ? "0s" : null)
                .run(HostProgram.library(), way, CHANNELS);
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.count("connFifo entries of 24 bytes at offset 64") > 0, outcome.output());
        if (way.equals("drain")) {
            assertEquals(text(outcome, "rank 0 sent: (.*)"), text(outcome, "rank 1 received: (.*)"));
            assertEquals(List.of(), outcome.warnings());
        }
        assertEquals(way.equals("kill") ? 2 * CHANNELS : 0, lostConnections(outcome), outcome.output());
        assertEquals(way.equals("abort") ? 1 : 0, outcome.count("the peer accepts no data"), outcome.output());
        assertEquals(way.equals("runaway") ? CHANNELS : 0, outcome.count("the device ran on without credits"),
                outcome.output());
    }

    @ParameterizedTest
    @ValueSource(strings = {"socket", "shm"})
    void allConnectionsWaitOnceForPeersThatTakeNothing(String network) throws Exception {
        abort(network);
    }

    @ParameterizedTest
    @Tag("nightly")
    @ValueSource(strings = {"ucx", "ucx tcp"})
    void allConnectionsWaitOnceForPeersThatTakeNothingOverUcx(String network) throws Exception {
        abort(network);
    }

    private static void abort(String network) throws Exception {
        var outcome = end("abort", network, STUCK_CHANNELS);
        assertEquals(1, outcome.count("the peer accepts no data"), outcome.output());
        assertTrue(number(outcome, "rank 0 was torn down in (\\d+) ms") < EACH_WAITING_MILLIS, outcome.output());
    }

    @ParameterizedTest
    @ValueSource(strings = {"socket", "shm", "ucx"})
    void bothRanksMayEndInTheMiddle(String network) throws Exception {
        var outcome = end("together", network, CHANNELS);
        assertTrue(number(outcome, "rank 0 was torn down in (\\d+) ms") < EACH_WAITING_MILLIS, outcome.output());
        assertTrue(number(outcome, "rank 1 was torn down in (\\d+) ms") < EACH_WAITING_MILLIS, outcome.output());
    }

    @ParameterizedTest
    @ValueSource(strings = {"socket", "shm"})
    void aKernelThatRunsOnWithoutCreditsIsNotWaitedFor(String network) throws Exception {
        runAway(network);
    }

    @ParameterizedTest
    @Tag("nightly")
    @ValueSource(strings = {"ucx", "ucx tcp"})
    void aKernelThatRunsOnWithoutCreditsIsNotWaitedForOverUcx(String network) throws Exception {
        runAway(network);
    }

    private static void runAway(String network) throws Exception {
        var outcome = end("runaway", network, CHANNELS);
        assertEquals(CHANNELS, outcome.count("the device ran on without credits"), outcome.output());
        assertEquals(0, outcome.count("the peer accepts no data"), outcome.output());
    }

    /**
     * After the first deregistration the memory belongs to the program again. The program may then store any data
     * there.
     */
    @ParameterizedTest
    @CsvSource({"socket, host", "shm, host", IN_PLACE + ", host", "ucx, host", "socket, device", "shm, device"})
    void nothingIsWrittenAfterTheFirstDeregistration(String network, String slots) throws Exception {
        assumeTrue(!network.equals(IN_PLACE) || SingleCopy.isPossible(), SingleCopy::describe);
        HostProgram host = host(network);
        if (slots.equals("device")) {
            host.with("HOST_SLOTS", "device")
                    .with("LD_LIBRARY_PATH", HostProgram.compileStub("cuda.c", "libcuda.so.1").toString())
                    .with("MILLRACE_DEVICE_SLOTS", "1");
        }
        var outcome = host.run(HostProgram.library(), "reuse", CHANNELS);
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(number(outcome, "(\\d+) steps were not sent yet") > 0, outcome.output());
        if (slots.equals("device")) {
            String copies = network.equals("shm") ? "(\\d+) copies within devices" : "(\\d+) with the host";
            assertTrue(number(outcome, copies) > 0, outcome.output());
        }
    }

    @Test
    @Tag("nightly")
    void overTheTcpOfUcxToo() throws Exception {
        whatWasPostedBeforeTheEndArrives("ucx tcp");
        bothRanksMayEndInTheMiddle("ucx tcp");
        everyConnectionOfAKilledPeerIsNamed("ucx tcp");
    }

    @ParameterizedTest
    @ValueSource(strings = {"socket", "shm", IN_PLACE, "ucx"})
    void everyConnectionOfAKilledPeerIsNamed(String network) throws Exception {
        assumeTrue(!network.equals(IN_PLACE) || SingleCopy.isPossible(), SingleCopy::describe);
        // with a reconnect deadline, the process would end after the first loss, before it reports the other
        // connections
        var outcome =
                host(network).with("MILLRACE_RECONNECT_DEADLINE", "0s").run(HostProgram.library(), "kill", CHANNELS);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(2 * CHANNELS, lostConnections(outcome), outcome.output());
    }

    /** Returns the number of connections that are lost according to the warnings. */
    private static long lostConnections(HostProgram.Outcome outcome) {
        return Pattern
                .compile("LOG 2 NET/Millrace: (socket|shared-memory|UCX) connection (\\S+) (from|to) .*connection lost")
                .matcher(outcome.output())
                .results()
                .map(found -> found.group(2))
                .distinct()
                .count();
    }

    @ParameterizedTest
    @ValueSource(strings = {"socket", "shm"})
    void communicatorsOneAfterTheOtherLeaveNothingOpen(String network) throws Exception {
        cycle(network);
    }

    @ParameterizedTest
    @Tag("nightly")
    @ValueSource(strings = {"ucx", "ucx tcp"})
    void communicatorsOneAfterTheOtherLeaveNothingOpenOverUcx(String network) throws Exception {
        cycle(network);
    }

    private static void cycle(String network) throws Exception {
        var outcome = HostProgram.compile("cycles_host", "-DNET_VERSION=12")
                .withNetwork(network)
                .with("MILLRACE_JAVA_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx24m")
                // with one arena per thread, memory would grow at random: UCX allocates a megabyte for each worker
                .with("MALLOC_ARENA_MAX", "1")
                .run(HostProgram.library(), CYCLES, 2);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(returned(outcome) > 48 << 10, () -> "of 64 MiB that the host has freed: " + outcome.output());
        MatchResult early = open(outcome, EARLY_CYCLES);
        MatchResult late = open(outcome, CYCLES);
        assertEquals(early.group(1), late.group(1), "file descriptors");
        assertGrowth(early, late, 2, 3, outcome); // the JVM starts and ends compiler threads
        assertGrowth(early, late, 3, 20, outcome);
        assertGrowth(early, late, 4, 20 << 10, outcome); // limit in KiB; compiler threads need memory
    }

    /** Returns the number of KiB that the process returned to the system when its first communicator ended. */
    private static long returned(HostProgram.Outcome outcome) {
        return Pattern.compile("finalize returned (-?\\d+) KiB")
                .matcher(outcome.output())
                .results()
                .mapToLong(found -> Long.parseLong(found.group(1)))
                .findFirst()
                .orElseThrow();
    }

    private static MatchResult open(HostProgram.Outcome outcome, int cycle) {
        return Pattern.compile("after " + cycle + ": (\\d+) fds, (\\d+) threads, (\\d+) mappings, (\\d+) KiB")
                .matcher(outcome.output())
                .results()
                .findFirst()
                .orElseThrow(() -> new AssertionError(outcome.output()));
    }

    private static void assertGrowth(MatchResult early, MatchResult late, int group, int most,
            HostProgram.Outcome outcome) {
        int growth = Integer.parseInt(late.group(group)) - Integer.parseInt(early.group(group));
        assertTrue(growth <= most, () -> early.group() + "\n" + late.group() + "\n" + outcome.output());
    }

    @Test
    void theDrainTimeoutIsOneForAllAndNewForNewConnections() {
        DataPath.DrainTimeout timeout = new DataPath.DrainTimeout();
        assertTrue(timeout.remaining().isPositive());
        assertTrue(timeout.expire());
        assertTrue(timeout.remaining().isZero());
        assertTrue(!timeout.expire());
        timeout.restart();
        assertTrue(timeout.remaining().isPositive());
    }
}
