package org.millrace.plugin.loss;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.file.OwnNamespace;
import org.millrace.plugin.HostProgram;

/**
 * Ranks in separate processes, and one of them is killed or stopped. The test checks the messages and the exits of the
 * other ranks.
 */
@Tag("slow")
class LossHostTest {

    private static HostProgram host(String network, String... definitions) throws Exception {
        return reportingSoon(HostProgram.compile("loss_host",
                Stream.concat(Stream.of("-DNET_VERSION=11", "-DTUNER_VERSION=7"), Stream.of(definitions))
                        .toArray(String[]::new)),
                network);
    }

    private static HostProgram reportingSoon(HostProgram host, String network) {
        return host.withNetwork(network).with("MILLRACE_STALL_REPORT", "0s").with("MILLRACE_LOSS_GRACE", "300ms");
    }

    private static HostProgram.Outcome run(HostProgram host, String way, int ranks) throws Exception {
        HostProgram.Outcome outcome = host.run(HostProgram.library(), way, ranks);
        assertEquals(0, outcome.exit(), outcome.output());
        for (int rank = 0; rank < ranks; rank++) {
            assertEquals(List.of(), filesOf(pid(outcome, rank)), outcome.output());
        }
        return outcome;
    }

    /** Returns a process's files in shared memory, except for its trace. The trace remains as a record. */
    private static List<String> filesOf(String pid) throws IOException {
        try (DirectoryStream<Path> files =
                Files.newDirectoryStream(Path.of("/dev/shm"), "millrace-*-" + pid + "-*-*.{sock,ring,mem}")) {
            List<String> names = new ArrayList<>();
            files.forEach(file -> names.add(file.getFileName().toString()));
            return names;
        }
    }

    private static String pid(HostProgram.Outcome outcome, int rank) {
        Matcher found = Pattern.compile("rank " + rank + " is pid (\\d+)").matcher(outcome.output());
        assertTrue(found.find(), outcome.output());
        return found.group(1);
    }

    /** Returns the lines that a rank wrote to standard error. */
    private static List<String> said(HostProgram.Outcome outcome, int rank) {
        return outcome.output()
                .lines()
                .filter(line -> line.startsWith("millrace: rank " + rank + ", pid " + pid(outcome, rank)))
                .toList();
    }

    @ParameterizedTest
    @CsvSource({"shm, 2", "socket, 2", "socket, 4", "ucx, 2", "ucx tcp, 4"})
    void aRankThatWaitsForAKilledPeerNamesItAndEnds(String network, int ranks) throws Exception {
        losesOne(host(network), ranks);
    }

    @ParameterizedTest
    @CsvSource({"22707, shm, 2", "22803, socket, 4"})
    void aRankOfRcclNamesAKilledPeerToo(int release, String network, int ranks) throws Exception {
        var outcome = losesOne(reportingSoon(
                HostProgram.compileRccl("loss_host", release, 64, "-DNET_VERSION=11", "-DTUNER_VERSION=7"), network),
                ranks);
        assertTrue(outcome.count("connFifo entries of 24 bytes at offset 64") > 0, outcome.output());
    }

    private static HostProgram.Outcome losesOne(HostProgram host, int ranks) throws Exception {
        var outcome = run(host, "wait", ranks);
        assertEquals(1, outcome.count("rank 0 was killed by signal 9"), outcome.output());
        for (int rank = 1; rank < ranks; rank++) {
            assertEquals(1, outcome.count("rank " + rank + " ended with status 75"), outcome.output());
            List<String> said = said(outcome, rank);
            // With more than two ranks, another survivor may end first, and is then also reported as lost.
            assertTrue(said.size() == 2 || ranks > 2 && said.size() > 2, outcome.output());
            assertTrue(said.getFirst().contains("lost the peer pid " + pid(outcome, 0) + " on "), outcome.output());
            assertTrue(said.getFirst().contains("sizes ["), outcome.output());
        }
        return outcome;
    }

    /**
     * When a rank is killed, its child processes continue to run (data loaders, for example). They hold no connection
     * and no file of the rank.
     */
    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket", "ucx"})
    void aRankIsMissedThoughItsChildrenLiveOn(String network) throws Exception {
        isMissed(network);
    }

    @ParameterizedTest
    @Tag("nightly")
    @ValueSource(strings = {"auto", "ucx tcp", "plugin"})
    void aRankIsMissedOverMoreNetworks(String network) throws Exception {
        isMissed(network);
    }

    private static void isMissed(String network) throws Exception {
        var outcome = run(host(network), "fork", 2);
        for (int child = 0; child < 2; child++) {
            if (!network.equals("plugin")) { // the C plugin of the test does not close its descriptors in children
                assertEquals(1, outcome.count("child " + child + " has 0 descriptors of the plugin's"),
                        outcome.output());
            }
            assertEquals(1, outcome.count("child " + child + " has outlived all ranks"), outcome.output());
        }
        assertEquals(1, outcome.count("rank 0 was killed by signal 9"), outcome.output());
        assertEquals(1, outcome.count("rank 1 ended with status 75"), outcome.output());
    }

    @ParameterizedTest
    @CsvSource({"socket, report, 2", "shm, exit, 4"})
    void theNextEnqueueFailsAndWhoDestroysIsNotEnded(String network, String onLoss, int ranks) throws Exception {
        var outcome =
                run(host(network).with("MILLRACE_ON_LOSS", onLoss).with("MILLRACE_LOSS_GRACE", "1m"), "enqueue", ranks);
        for (int rank = 1; rank < ranks; rank++) {
            assertEquals(1, outcome.count("rank " + rank + " enqueues: result 6"), outcome.output());
            assertEquals(1, outcome.count("rank " + rank + " ended with status 0"), outcome.output());
        }
        assertEquals(ranks - 1, outcome.warnings()
                .stream()
                .filter(line -> line.contains("tunerGetCollInfo: the communicator has lost a peer, abort it: pid "
                        + pid(outcome, 0) + " on "))
                .count(), outcome.output());
    }

    /** Rank 0 ends without a message. Rank 1's device is idle, so rank 1 does not wait for rank 0. */
    @Test
    void aPeerThatLeavesWithoutAWordIsNotMissedByADeviceThatIsIdle() throws Exception {
        var outcome = run(withStubOfCuda("socket"), "leave", 2);
        assertEquals(2, outcome.count("ended with status 0"), outcome.output());
        assertEquals(0, outcome.count("millrace: "), outcome.output());
        assertTrue(outcome.warnings().stream().anyMatch(line -> line.contains("connection lost")), outcome.output());
    }

    /** A kernel that waits for data changes no memory, so only its long run time shows the wait. */
    @Test
    void aDeviceThatDoesNotGetOnWaitsForThePeerThatIsLost() throws Exception {
        var outcome = run(withStubOfCuda("shm").with("STUB_CUDA_BUSY", "1"), "leave", 2);
        assertEquals(1, outcome.count("rank 1 ended with status 75"), outcome.output());
        assertEquals(1, outcome.count("lost the peer pid " + pid(outcome, 0) + " on "), outcome.output());
    }

    private static HostProgram withStubOfCuda(String network) throws Exception {
        return host(network).with("LD_LIBRARY_PATH", HostProgram.compileStub("cuda.c", "libcuda.so.1").toString());
    }

    @Test
    void whoExitsAndClosesNothingLeavesNothing() throws Exception {
        var outcome = run(host("shm").with("MILLRACE_LOSS_GRACE", "1m"), "exit", 2);
        assertEquals(2, outcome.count("ended with status 0"), outcome.output());
    }

    @ParameterizedTest
    @CsvSource({"shm, 2", "socket, 2"})
    void aPeerThatIsStoppedIsNotLost(String network, int ranks) throws Exception {
        var outcome = run(host(network), "stop", ranks);
        assertEquals(1, outcome.count("rank 0 is stopped"), outcome.output());
        assertEquals(ranks, outcome.count("ended with status 0"), outcome.output());
        assertEquals(0, outcome.count("millrace: "), outcome.output());
    }

    /** The peer is stopped for longer than the interval between checks of its process. /proc lists no processes. */
    @Tag("root")
    @Test
    void aPeerThatProcDoesNotShowIsNotLost() throws Exception {
        OwnNamespace.assumePossible();
        var outcome =
                run(host("shm", "-DSTILL_MILLISECONDS=1200").startedBy(OwnNamespace.after("mount -t tmpfs none /proc")),
                        "stop", 2);
        assertEquals(1, outcome.count("rank 0 is stopped"), outcome.output());
        assertEquals(2, outcome.count("ended with status 0"), outcome.output());
        assertEquals(0, outcome.count("millrace: "), outcome.output());
    }

    @Tag("root")
    @ParameterizedTest
    @CsvSource({"shm, mount -t tmpfs none /proc", "ucx, umount /proc"}) // UCX requires that /proc exists
    void aKilledPeerThatProcDidNotShowIsMissedAllTheSame(String network, String proc) throws Exception {
        OwnNamespace.assumePossible();
        var outcome = run(host(network).startedBy(OwnNamespace.after(proc)), "wait", 2);
        assertEquals(1, outcome.count("rank 0 was killed by signal 9"), outcome.output());
        assertEquals(1, outcome.count("rank 1 ended with status 75"), outcome.output());
    }
}
