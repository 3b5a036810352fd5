package org.millrace.namespace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.plugin.HostProgram;
import org.millrace.trace.Verdict.Cause;
import org.millrace.trace.Verdict;

/**
 * Groups of three hosts. Their network becomes silent, or it is slow, narrow or lossy.
 * {@code -Dmillrace.partitions=all} runs every case, and prints a row of a table for each rank. With
 * {@code -Dmillrace.partitions.stopped=60} a rank reads nothing for 60 s.
 */
@Timeout(300)
@Tag("root")
@Tag("slow")
class PartitionTest {

    private static final int HOSTS = 3;
    /**
     * Setting that makes a rank report a lost stream at once. With a reconnect deadline, the rank would report the loss
     * only after that deadline, as CutTest checks.
     */
    private static final String NOT_MADE_AGAIN = "MILLRACE_RECONNECT_DEADLINE=0s";
    private static final String TOLD = "The network between ";
    private static final boolean ALL = "all".equals(System.getProperty("millrace.partitions"));
    /**
     * Time for which a process is stopped, in seconds. The time exceeds the 10 s after which a link counts as silent,
     * and the 14 s of keep-alive.
     */
    private static final int STOPPED_SECONDS = Integer.getInteger("millrace.partitions.stopped", 16);
    private static final int LOOKS = 20;

    @TempDir
    Path directory;
    private TestNetwork network;
    private TestJob job;
    private long begun = System.nanoTime();

    /** Fault of the network, with the ranks that lose a peer. */
    private enum Fault {
        CUT(0, 1, 2),
        SILENT_BOTH_WAYS(0, 1, 2),
        SILENT_ONE_WAY(0, 1, 2),
        BETWEEN_TWO_OF_THREE(List.of(0, 1, 2), 1, 2),
        DOWN_FOR_20_S(0, 1, 2),
        HOST_GONE(0, 1);

        private final List<Integer> ranks;
        /** Ranks that report the fault. A rank that loses no peer learns of the fault from its peers. */
        private final List<Integer> told;

        Fault(Integer... ranks) {
            this(List.of(ranks), ranks);
        }

        Fault(List<Integer> told, Integer... ranks) {
            this.ranks = List.of(ranks);
            this.told = told;
        }
    }

    /**
     * A program and the fault of its network. The program uses TLS or not, and is idle or has operations in flight.
     */
    private record Case(boolean takeover, boolean tls, boolean idle, Fault fault) {

        @Override
        public String toString() {
            return (takeover ? "takeover" : "engine") + (tls ? ", TLS" : "") + (idle ? ", idle" : "") + ": "
                    + fault.name().toLowerCase(Locale.ROOT).replace('_', ' ');
        }
    }

    static Stream<Case> cases() {
        if (!ALL) {
            return Stream.of(new Case(false, false, false, Fault.BETWEEN_TWO_OF_THREE),
                    new Case(true, true, true, Fault.SILENT_BOTH_WAYS),
                    new Case(true, false, false, Fault.BETWEEN_TWO_OF_THREE));
        }
        return Stream.of(Fault.values())
                .flatMap(fault -> Stream.of(new Case(false, false, false, fault), new Case(true, false, false, fault),
                        new Case(false, true, true, fault), new Case(true, true, true, fault)));
    }

    @BeforeEach
    void makeHosts() throws Exception {
        network = new TestNetwork(HOSTS);
        job = new TestJob(network);
    }

    @AfterEach
    void end() throws Exception {
        if (network != null) { // null if this machine allows no namespaces
            job.close();
            network.close();
        }
    }

    private void startTakeover(boolean idle, boolean tls) throws Exception {
        job.startHost(
                HostProgram.compile("stall_host", "-DNET_VERSION=11")
                        .with("NCCL_SOCKET_IFNAME", "eth0")
                        .with("MILLRACE_RECONNECT_DEADLINE", "0s")
                        .with("MILLRACE_TLS", tls ? "1" : null),
                HostProgram.library(), idle ? "healthy" : "wire", HOSTS, 2, HOSTS, 0, "ring");
        for (int rank = 0; rank < HOSTS && !idle; rank++) {
            int host = rank;
            job.await("rank " + rank + " has done some operations", () -> job.framesOn(host) > 1000);
        }
    }

    private boolean idle() {
        return IntStream.range(0, HOSTS).allMatch(rank -> job.says(rank, "IDLE"));
    }

    private void both(int one, int other) throws Exception {
        network.silence(one, other);
        network.silence(other, one);
    }

    private void plant(Case of) throws Exception {
        switch (of.fault) {
            case CUT -> network.plug(0, false);
            case SILENT_BOTH_WAYS, DOWN_FOR_20_S -> {
                both(0, 1);
                both(0, 2);
            }
            case SILENT_ONE_WAY -> {
                network.silence(0, 1);
                network.silence(0, 2);
            }
            case BETWEEN_TWO_OF_THREE -> both(1, 2);
            case HOST_GONE -> {
                both(2, 0);
                both(2, 1);
                ProcessHandle.of(job.pid(2)).orElseThrow().destroyForcibly();
            }
        }
    }

    @ParameterizedTest
    @MethodSource("cases")
    void whoeverLosesAnotherIsToldOnceAndWhyNamesBoth(Case of) throws Exception {
        if (of.takeover) {
            startTakeover(of.idle, of.tls);
        } else {
            job.startEngine("10.77.0.", of.idle ? 11 : Long.MAX_VALUE, "MILLRACE_TLS=" + (of.tls ? 1 : 0),
                    NOT_MADE_AGAIN);
        }
        if (of.idle) {
            job.await("all have ended their operations", () -> of.takeover ? job.says(-1, "STILL") : idle());
        }
        int before = job.said().size();
        begun = System.nanoTime();
        plant(of);
        for (int rank : of.fault.told) {
            job.await("rank " + rank + " is told", () -> job.says(rank, TOLD));
        }
        Map<Integer, List<String>> whys = new LinkedHashMap<>();
        for (int host = 0; host < HOSTS; host++) {
            whys.put(host, job.why(host).stream().map(Verdict::sentence).toList());
        }
        if (ALL) {
            job.await(Duration.ofSeconds(20));
            if (of.fault == Fault.DOWN_FOR_20_S) {
                for (int other = 1; other < HOSTS; other++) {
                    network.hear(0, other);
                    network.hear(other, 0);
                }
            }
            job.await(Duration.ofSeconds(10));
            print(of, before, whys);
        }
        if (of.fault == Fault.BETWEEN_TWO_OF_THREE) {
            assertThirdIsTold(whys);
        }
        for (int rank : of.fault.ranks) {
            List<String> told = job.saidBy(rank).stream().filter(text -> text.contains(TOLD)).toList();
            long peers = of.fault == Fault.BETWEEN_TWO_OF_THREE || of.fault == Fault.HOST_GONE || rank != 0 ? 1 : 2;
            assertTrue(!told.isEmpty() && told.size() <= peers, () -> "each link once: " + told);
            String own = TestNetwork.address(rank) + ", eth0";
            assertTrue(told.stream().allMatch(text -> text.contains(TestNetwork.name(rank) + " (" + own)),
                    told::toString);
            assertTrue(whys.get(rank).stream().anyMatch(text -> text.startsWith(TOLD) && text.contains(own)),
                    () -> "why on " + TestNetwork.name(rank) + ": " + whys);
        }
    }

    /**
     * Checks the report of rank 0. Rank 0 loses no peer. It reports exactly once that its two peers have lost each
     * other.
     */
    private void assertThirdIsTold(Map<Integer, List<String>> whys) {
        List<String> told = job.saidBy(0).stream().filter(text -> text.contains(TOLD)).toList();
        assertEquals(1, told.size(), told::toString);
        for (int end = 1; end < HOSTS; end++) {
            String address = TestNetwork.address(end);
            assertTrue(told.getFirst().contains(address), told::toString);
            assertTrue(whys.get(0).stream().anyMatch(text -> text.startsWith(TOLD) && text.contains(address)),
                    whys::toString);
        }
    }

    private void print(Case of, int before, Map<Integer, List<String>> whys) {
        List<TestJob.Said> since = job.said();
        since = since.subList(before, since.size());
        for (int rank = 0; rank < HOSTS; rank++) {
            for (TestJob.Said each : since) {
                if (each.rank() == rank) {
                    System.out.printf(Locale.ROOT, "| %s | rank %d | %.1f s | %s |%n", of, rank,
                            (each.time() - begun) / 1e9, each.text());
                }
            }
            System.out.println("| " + of + " | why on host" + rank + " | | " + whys.get(rank) + " |");
        }
    }

    /**
     * The process of a peer is stopped, but Linux still answers on the process's connections. Data of the other ranks
     * fills all TCP windows.
     */
    @Test
    void aPeerThatDoesNotReadIsNeitherSilentNorLost() throws Exception {
        network.hosts.get(1).run("echo '4096 8192 8192' > /proc/sys/net/ipv4/tcp_rmem");
        job.startEngine("10.77.0.", Long.MAX_VALUE, NOT_MADE_AGAIN);
        long pid = job.processes.get(1).pid();
        try {
            job.await("a window is closed", () -> closesAWindow(pid));
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(STOPPED_SECONDS);
            while (System.nanoTime() - end < 0) {
                for (int host : new int[] {0, 2}) {
                    assertTrue(job.why(host)
                            .stream()
                            .noneMatch(each -> each.cause() == Cause.SILENT || each.cause() == Cause.CUT));
                }
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(500));
            }
        } finally {
            network.hosts.get(1).run("kill -CONT " + pid);
        }
        job.assertGoesOn();
    }

    /**
     * Stops the peer's process and waits until a TCP window is closed. If no window closes because the round is too
     * short, continues the process and returns false.
     */
    private boolean closesAWindow(long pid) {
        try {
            network.hosts.get(1).run("kill -STOP " + pid);
            for (int look = 0; look < LOOKS; look++) {
                if (hasClosedWindow(0)) {
                    return true;
                }
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
            }
            network.hosts.get(1).run("kill -CONT " + pid);
            return false;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private boolean hasClosedWindow(int host) {
        try {
            return network.hosts.get(host).run("ss -tno state established").contains("timer:(persist");
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    /** A cut of three seconds is over before any rank learns of it, and data in flight arrives. */
    @Test
    void slowNarrowAndDownForAWhileIsNotSilent() throws Exception {
        network.slow("200mbit", 700);
        job.startEngine("10.77.0.", Long.MAX_VALUE, NOT_MADE_AGAIN);
        both(0, 1);
        job.await(Duration.ofSeconds(3));
        network.hear(0, 1);
        network.hear(1, 0);
        job.assertGoesOn();
    }

    @Test
    void lossDelayAndReorderingAreNotSilence() throws Exception {
        assumeTrue(ALL, "-Dmillrace.partitions=all runs it");
        Process link = network.lossy(directory, 5, 1, 1);
        job.processes.add(link);
        job.startEngine("10.78.0.", Long.MAX_VALUE, "NCCL_SOCKET_IFNAME=wan0", "MILLRACE_TLS=1", NOT_MADE_AGAIN);
        job.assertGoesOn();
        link.getOutputStream().close();
        String lost = link.inputReader().readLine();
        assertTrue(lost.endsWith(" lost") && !lost.startsWith("0 "), lost);
    }
}
