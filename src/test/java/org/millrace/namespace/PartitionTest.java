package org.millrace.namespace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
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
import org.millrace.trace.reader.Hang;
import org.millrace.trace.reader.TraceReader;
import org.millrace.trace.reader.Verdict.Cause;
import org.millrace.trace.reader.Verdict;

/**
 * Groups of three hosts whose network falls silent, or is slow, narrow or lossy. {@code -Dmillrace.partitions=all} runs
 * every case, and prints a row of a table for each rank; {@code -Dmillrace.partitions.stopped=60} has a rank read
 * nothing for so many seconds.
 */
@Timeout(300)
@Tag("root")
@Tag("slow")
class PartitionTest {

    private static final int HOSTS = 3;
    private static final String SECRET = "MILLRACE_SECRET=a-secret-of-twenty-characters";
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(90);
    private static final String TOLD = "The network between ";
    private static final boolean ALL = "all".equals(System.getProperty("millrace.partitions"));
    /** Longer than the 10 s after which a link counts as silent, and the 14 s of keep-alive. */
    private static final int STOPPED_SECONDS = Integer.getInteger("millrace.partitions.stopped", 16);

    @TempDir
    Path directory;
    private TestNetwork network;
    private final List<Said> said = Collections.synchronizedList(new ArrayList<>());
    private final List<Process> processes = new ArrayList<>();
    private long begun = System.nanoTime();

    /** A line of a rank's; -1 for one of none. */
    private record Said(int rank, String text, long time) {
    }

    /** What is done to the network, and which ranks lose another by it. */
    private enum Fault {
        CUT(0, 1, 2),
        SILENT_BOTH_WAYS(0, 1, 2),
        SILENT_ONE_WAY(0, 1, 2),
        BETWEEN_TWO_OF_THREE(1, 2),
        DOWN_FOR_20_S(0, 1, 2),
        HOST_GONE(0, 1);

        private final List<Integer> ranks;

        Fault(Integer... ranks) {
            this.ranks = List.of(ranks);
        }
    }

    /** A program, and what it does while the network falls silent. */
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
                    new Case(true, true, true, Fault.SILENT_BOTH_WAYS));
        }
        return Stream.of(Fault.values())
                .flatMap(fault -> Stream.of(new Case(false, false, false, fault), new Case(true, false, false, fault),
                        new Case(false, true, true, fault), new Case(true, true, true, fault)));
    }

    @BeforeEach
    void makeHosts() throws Exception {
        network = new TestNetwork(HOSTS);
    }

    @AfterEach
    void end() throws Exception {
        processes.forEach(Process::destroyForcibly);
        for (Process each : processes) {
            each.onExit().join();
        }
        if (network != null) { // there are no namespaces here
            network.close();
        }
    }

    private void startEngine(String addresses, long rounds, String... settings) throws Exception {
        for (int rank = 0; rank < HOSTS; rank++) {
            List<String> arguments = new ArrayList<>(List.of("tcp:" + addresses + "1:4711", "" + rank, "" + HOSTS,
                    "" + rounds, SECRET, "MILLRACE_RECONNECT_DEADLINE=0s", "MILLRACE_STALL_DEADLINE=200s"));
            arguments.addAll(List.of(settings));
            Process process = network.hosts.get(rank).java(EndlessRank.class, arguments.toArray(String[]::new));
            processes.add(process);
            int number = rank;
            Thread.ofPlatform().daemon().start(() -> follow(process, number));
        }
        for (int rank = 0; rank < HOSTS; rank++) {
            int number = rank;
            await("round 10 of rank " + rank, () -> says(number, rounds > 1000 ? "ROUND 10" : "IDLE"));
        }
    }

    private void follow(Process process, int rank) {
        try (BufferedReader lines = process.inputReader()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                said.add(new Said(rank, line, System.nanoTime()));
            }
        } catch (IOException ended) {
            // by the test
        }
    }

    private void startTakeover(boolean idle, boolean tls) throws Exception {
        HostProgram host = HostProgram.compile("stall_host", "-DNET_VERSION=11")
                .withNetwork("socket")
                .with("NCCL_SOCKET_IFNAME", "eth0")
                .with("MILLRACE_THREADS", "1")
                .with("MILLRACE_RECONNECT_DEADLINE", "0s")
                .with("MILLRACE_SECRET", SECRET.split("=")[1])
                .with("MILLRACE_TLS", tls ? "1" : null)
                .with("TEST_HOSTS",
                        network.hosts.stream().map(each -> "" + each.pid()).collect(Collectors.joining(",")));
        Path output = directory.resolve("output");
        Process process =
                host.start(output, HostProgram.library(), idle ? "healthy" : "wire", HOSTS, 2, HOSTS, 0, "ring");
        processes.add(process);
        Thread.ofPlatform().daemon().start(() -> follow(output, process));
        if (idle) {
            await("all have ended their operations", () -> says(-1, "STILL"));
        } else {
            for (int rank = 0; rank < HOSTS; rank++) {
                int number = rank;
                await("rank " + rank + " has done some operations", () -> framesOn(number) > 1000);
            }
        }
    }

    private void follow(Path output, Process process) {
        int read = 0;
        while (process.isAlive()) {
            try {
                List<String> lines = Files.readAllLines(output);
                for (; read < lines.size(); read++) {
                    String line = lines.get(read);
                    int rank = line.startsWith("millrace: rank ") ? line.charAt("millrace: rank ".length()) - '0' : -1;
                    said.add(new Said(rank, line, System.nanoTime()));
                }
            } catch (IOException half) {
                // a line is being written
            }
            LockSupport.parkNanos(20_000_000);
        }
    }

    private long framesOn(int host) {
        try {
            return TraceReader.readAll(network.hosts.get(host).sharedDirectory(), (file, problem) -> {})
                    .stream()
                    .flatMap(process -> process.connections().stream())
                    .mapToLong(connection -> connection.frames())
                    .sum();
        } catch (IOException e) {
            return 0;
        }
    }

    private List<Said> saidBy(int rank) {
        synchronized (said) {
            return said.stream().filter(each -> each.rank == rank).toList();
        }
    }

    private boolean says(int rank, String text) {
        return saidBy(rank).stream().anyMatch(each -> each.text.contains(text));
    }

    private void await(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + PATIENCE_NANOS;
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - end < 0, () -> what + ": " + said);
            LockSupport.parkNanos(10_000_000);
        }
    }

    /** What {@code why} says on a host: it reads that host's traces. */
    private List<Verdict> why(int host) throws IOException {
        return Hang.verdicts(
                () -> TraceReader.readAll(network.hosts.get(host).sharedDirectory(), (file, problem) -> {}),
                Duration.ofSeconds(1));
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
                kill(2);
            }
        }
    }

    /** By its trace: a takeover's ranks are children of a host program. */
    private void kill(int rank) throws IOException {
        long pid = TraceReader.readAll(network.hosts.get(rank).sharedDirectory(), (file, problem) -> {})
                .getFirst()
                .identity()
                .pid();
        ProcessHandle.of(pid).orElseThrow().destroyForcibly();
    }

    @ParameterizedTest
    @MethodSource("cases")
    void whoeverLosesAnotherIsToldOnceAndWhyNamesBoth(Case of) throws Exception {
        if (of.takeover) {
            startTakeover(of.idle, of.tls);
        } else {
            startEngine("10.77.0.", of.idle ? 11 : Long.MAX_VALUE, "MILLRACE_TLS=" + (of.tls ? 1 : 0));
        }
        int before = said.size();
        begun = System.nanoTime();
        plant(of);
        for (int rank : of.fault.ranks) {
            await("rank " + rank + " is told", () -> says(rank, TOLD));
        }
        Map<Integer, List<String>> whys = new LinkedHashMap<>();
        for (int host = 0; host < HOSTS; host++) {
            whys.put(host, why(host).stream().map(Verdict::sentence).toList());
        }
        if (ALL) {
            long later = begun + TimeUnit.SECONDS.toNanos(20);
            await("20 s", () -> System.nanoTime() - later > 0);
            if (of.fault == Fault.DOWN_FOR_20_S) {
                for (int other = 1; other < HOSTS; other++) {
                    network.hear(0, other);
                    network.hear(other, 0);
                }
            }
            await("10 s more", () -> System.nanoTime() - later > TimeUnit.SECONDS.toNanos(10));
            print(of, before, whys);
        }
        for (int rank : of.fault.ranks) {
            List<String> told = saidBy(rank).stream().map(Said::text).filter(text -> text.contains(TOLD)).toList();
            long peers = of.fault == Fault.BETWEEN_TWO_OF_THREE || of.fault == Fault.HOST_GONE || rank != 0 ? 1 : 2;
            assertTrue(!told.isEmpty() && told.size() <= peers, () -> "each link once: " + told);
            String own = TestNetwork.address(rank) + ", eth0";
            assertTrue(told.stream().allMatch(text -> text.contains(TestNetwork.name(rank) + " (" + own)),
                    told::toString);
            assertTrue(whys.get(rank).stream().anyMatch(text -> text.startsWith(TOLD) && text.contains(own)),
                    () -> "why on " + TestNetwork.name(rank) + ": " + whys);
        }
    }

    private void print(Case of, int before, Map<Integer, List<String>> whys) {
        List<Said> since;
        synchronized (said) {
            since = List.copyOf(said.subList(before, said.size()));
        }
        for (int rank = 0; rank < HOSTS; rank++) {
            int number = rank;
            since.stream()
                    .filter(each -> each.rank == number && !each.text.startsWith("ROUND"))
                    .forEach(each -> System.out.printf(Locale.ROOT, "| %s | rank %d | %.1f s | %s |%n", of, number,
                            (each.time - begun) / 1e9, each.text));
            System.out.println("| " + of + " | why on host" + rank + " | | " + whys.get(rank) + " |");
        }
    }

    /** Its kernel answers; what its peers have sent fills all windows meanwhile. */
    @Test
    void aPeerThatDoesNotReadIsNeitherSilentNorLost() throws Exception {
        network.hosts.get(1).run("echo '4096 8192 8192' > /proc/sys/net/ipv4/tcp_rmem");
        startEngine("10.77.0.", Long.MAX_VALUE);
        long pid = processes.get(1).pid();
        network.hosts.get(1).run("kill -STOP " + pid);
        try {
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(STOPPED_SECONDS);
            await("a window is closed", () -> hasClosedWindow(0));
            while (System.nanoTime() - end < 0) {
                for (int host : new int[] {0, 2}) {
                    assertTrue(why(host).stream()
                            .noneMatch(each -> each.cause() == Cause.SILENT || each.cause() == Cause.CUT));
                }
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(500));
            }
        } finally {
            network.hosts.get(1).run("kill -CONT " + pid);
        }
        assertGoesOn();
    }

    private boolean hasClosedWindow(int host) {
        try {
            return network.hosts.get(host).run("ss -tno state established").contains("timer:(persist");
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    /** All ranks do more rounds than they had done, and nobody has said anything else. */
    private void assertGoesOn() {
        for (int rank = 0; rank < HOSTS; rank++) {
            int number = rank;
            int rounds = saidBy(rank).size();
            await("rank " + rank + " goes on", () -> saidBy(number).size() > rounds + 1);
            assertEquals(List.of(),
                    saidBy(rank).stream()
                            .map(Said::text)
                            .filter(text -> !text.startsWith("ROUND") && !text.contains("nothing moves."))
                            .toList());
        }
    }

    /** A cut of three seconds is over before anybody is told, and what was under way arrives. */
    @Test
    void slowNarrowAndDownForAWhileIsNotSilent() throws Exception {
        network.slow("200mbit", 700);
        startEngine("10.77.0.", Long.MAX_VALUE);
        both(0, 1);
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(3);
        await("3 s", () -> System.nanoTime() - end > 0);
        network.hear(0, 1);
        network.hear(1, 0);
        assertGoesOn();
    }

    @Test
    void lossDelayAndReorderingAreNotSilence() throws Exception {
        assumeTrue(ALL, "-Dmillrace.partitions=all runs it");
        Process link = network.lossy(directory, 5, 1, 1);
        processes.add(link);
        startEngine("10.78.0.", Long.MAX_VALUE, "NCCL_SOCKET_IFNAME=wan0", "MILLRACE_TLS=1");
        assertGoesOn();
        link.getOutputStream().close();
        String lost = link.inputReader().readLine();
        assertTrue(lost.endsWith(" lost") && !lost.startsWith("0 "), lost);
    }
}
