package org.millrace.namespace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.config.Settings;
import org.millrace.plugin.HostProgram;
import org.millrace.trace.TracedProcess;

/**
 * Jobs of three hosts. Their network is cut repeatedly at random moments, for less than the deadline. All jobs complete
 * correctly, and every byte is checked. Prints the duration of each recovery. Properties:
 * <ul>
 * <li>{@code -Dmillrace.cuts=60} sets the number of cuts per kind of job, and runs all jobs.
 * <li>{@code -Dmillrace.cuts.seed=1000} draws other cuts.
 * <li>{@code -Dmillrace.cuts.job=gin} runs the jobs with names that begin with {@code gin}.
 * <li>{@code -Dmillrace.cuts.long=10} sets the number of cuts that exceed the deadline.
 * <li>{@code -Dmillrace.cuts.shortest=10000 -Dmillrace.cuts.longest=50000 -Dmillrace.cuts.deadline=60s} changes the
 * length of the cuts that heal, by default 0.1 to 2 s with a deadline of 5 s.
 * </ul>
 */
@Timeout(1800)
@Tag("root")
@Tag("slow")
class CutTest {

    private static final int HOSTS = 3;
    private static final String DEADLINE = "MILLRACE_RECONNECT_DEADLINE";
    private static final int CUTS = Integer.getInteger("millrace.cuts", 0);
    private static final int FEW_CUTS = 4;
    private static final int LONG_CUTS = Integer.getInteger("millrace.cuts.long", CUTS > 0 ? 0 : 1);
    private static final String SHORT_DEADLINE = "2s";
    private static final long SEED = Long.getLong("millrace.cuts.seed", 1);
    private static final String ONLY = System.getProperty("millrace.cuts.job", "");
    private static final int SHORTEST_MILLIS = Integer.getInteger("millrace.cuts.shortest", 100);
    private static final int LONGEST_MILLIS = Integer.getInteger("millrace.cuts.longest", 2000);
    private static final String USUAL_DEADLINE = System.getProperty("millrace.cuts.deadline", "5s");
    private static final int PAUSE_MILLIS = 500;
    /** Maximum time from the end of a cut until all ranks have completed another round. */
    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    /**
     * Maximum time from a long cut until an end of a connection detects the cut. An idle machine needs 14 s plus the
     * deadline.
     */
    private static final Duration LONG_TIMEOUT = Duration.ofSeconds(60);
    /** Time after which a recovery is reported as slow. */
    private static final Duration SOON = Duration.ofSeconds(6);
    /** Time from the beginning of a cut until no data from before the cut is in flight. */
    private static final Duration SETTLED = Duration.ofMillis(1000);
    private static final Path REPORTS = Path.of("target", "cuts");

    private enum Job {
        ENGINE, TAKEOVER, UNPACK, GIN
    }

    private enum Cut {
        /** Both ends receive a reset. The network carries data afterwards. */
        RESET,
        /**
         * One end receives a reset, and the other end receives nothing. Data that the first end sends is lost for a
         * while.
         */
        HALF_OPEN,
        SILENT_ONE_WAY,
        SILENT_BOTH_WAYS,
        /** An end learns at once that its peer is unreachable. */
        NO_ROUTE,
        /** One host has no link to any other host. */
        UNPLUGGED,
        /** One of the two interfaces of a host is unplugged. The next cut of this kind plugs the interface in again. */
        ONE_INTERFACE;

        private boolean stopsAll() {
            return this != RESET && this != ONE_INTERFACE;
        }
    }

    private record Case(Job job, boolean tls, int interfaces) {

        private Cut[] cuts() {
            return interfaces > 1 ? Cut.values() : Arrays.copyOf(Cut.values(), Cut.values().length - 1);
        }

        @Override
        public String toString() {
            return job.name().toLowerCase(Locale.ROOT) + (tls ? ", TLS" : "")
                    + (interfaces > 1 ? ", " + interfaces + " interfaces" : "");
        }
    }

    private TestNetwork network;
    private TestJob job;
    private final long begun = System.nanoTime();
    /** Number of the host with an unplugged interface; -1 if no interface is unplugged. */
    private int unplugged = -1;
    private int unpluggedInterface;

    static Stream<Case> cases() {
        Stream<Case> all = Stream.of(new Case(Job.ENGINE, false, 2), new Case(Job.TAKEOVER, true, 1),
                new Case(Job.UNPACK, false, 1), new Case(Job.GIN, true, 2), new Case(Job.ENGINE, true, 1),
                new Case(Job.TAKEOVER, false, 2), new Case(Job.UNPACK, true, 2), new Case(Job.GIN, false, 1));
        return all.filter(each -> each.toString().startsWith(ONLY)).limit(CUTS > 0 ? Long.MAX_VALUE : 4);
    }

    @BeforeEach
    void begin() {
        if (Settings.all().stream().noneMatch(setting -> setting.name().equals(DEADLINE))) {
            String message = "SKIPPED: there is no " + DEADLINE + ", and so no connection that is made again";
            System.err.println(message);
            abort(message);
        }
    }

    @AfterEach
    void end() throws Exception {
        if (network != null) {
            job.close();
            network.close();
        }
    }

    private void start(Case of, String deadline, long seed) throws Exception {
        network = new TestNetwork(HOSTS, of.interfaces);
        job = new TestJob(network);
        String interfaces = of.interfaces > 1 ? "eth0,eth1" : "eth0";
        if (of.job == Job.ENGINE) {
            job.startEngine("10.77.0.", Long.MAX_VALUE, "NCCL_SOCKET_IFNAME=" + interfaces,
                    "MILLRACE_TLS=" + (of.tls ? 1 : 0), "NCCL_MAX_NCHANNELS=1", DEADLINE + "=" + deadline);
            return;
        }
        startHost(of, deadline, seed);
        job.await("10 rounds", () -> job.rounds() >= 10);
    }

    private void startHost(Case of, String deadline, long seed) throws Exception {
        String interfaces = of.interfaces > 1 ? "eth0,eth1" : "eth0";
        job.startHost(
                HostProgram.compile("cuts_host", "-DNET_VERSION=11")
                        .with("NCCL_SOCKET_IFNAME", interfaces)
                        .with("MILLRACE_TLS", of.tls ? "1" : null)
                        .with("MILLRACE_GIN", of.job == Job.GIN ? "host" : null)
                        .with("MILLRACE_UNPACK", of.job == Job.UNPACK ? "host" : null)
                        .with("MILLRACE_UNPACK_MIB", of.job == Job.UNPACK ? "32" : null)
                        .with(DEADLINE, deadline),
                HostProgram.library(), of.job == Job.GIN ? "gin" : "takeover", HOSTS, 1, seed);
    }

    /** The hosts have no routes to each other until the ranks have failed to connect. */
    @ParameterizedTest
    @EnumSource(names = {"TAKEOVER", "GIN"})
    void connectionsAreMadeThoughThereIsNoRouteAtFirst(Job kind) throws Exception {
        Case of = new Case(kind, false, 1);
        network = new TestNetwork(HOSTS);
        job = new TestJob(network);
        for (int host = 0; host < HOSTS; host++) {
            network.route(host, (host + 1) % HOSTS, false);
        }
        startHost(of, "60s", SEED);
        job.await("it is tried again",
                () -> job.said().stream().anyMatch(each -> each.text().contains(" is tried again for ")));
        for (int host = 0; host < HOSTS; host++) {
            network.route(host, (host + 1) % HOSTS, true);
        }
        job.await("10 rounds", () -> job.rounds() >= 10);
        assertEndsRight(of);
    }

    @ParameterizedTest
    @MethodSource("cases")
    void everyCutHeals(Case of) throws Exception {
        int cuts = CUTS > 0 ? CUTS : FEW_CUTS;
        start(of, USUAL_DEADLINE, SEED);
        Random random = new Random(SEED + of.toString().hashCode());
        List<Cut> kinds = new ArrayList<>();
        double sum = 0;
        double most = 0;
        for (int i = 0; i < cuts; i++) {
            if (kinds.isEmpty()) {
                kinds.addAll(List.of(of.cuts()));
            }
            String name = of + ", cut " + i + " of seed " + SEED;
            job.await(Duration.ofMillis(random.nextInt(PAUSE_MILLIS)));
            double lost = cut(name, kinds.remove(random.nextInt(kinds.size())), random);
            sum += lost;
            most = Math.max(most, lost);
        }
        System.out.printf(Locale.ROOT, "%s: %d cuts, %d rounds; all went on %.2f s after a cut, %.2f at most%n", of,
                cuts, job.furthest(), sum / cuts, most);
        assertEndsRight(of);
    }

    static Stream<Arguments> longCuts() {
        List<Case> cases = cases().toList();
        List<Cut> kinds = List.of(Cut.HALF_OPEN, Cut.SILENT_BOTH_WAYS, Cut.SILENT_ONE_WAY);
        return IntStream.range(0, LONG_CUTS)
                .mapToObj(i -> Arguments.of(cases.get((i + 1) % cases.size()), kinds.get(i % kinds.size()), i));
    }

    /**
     * If neither end receives data, both ends detect the loss independently. If only one end learns that its stream is
     * lost, this end abandons the connection at its deadline. The other end learns of the lost connection when the
     * network works again.
     */
    @ParameterizedTest(allowZeroInvocations = true)
    @MethodSource("longCuts")
    void bothEndsAreToldOfOneThatLastsLonger(Case of, Cut kind, int number) throws Exception {
        start(of, SHORT_DEADLINE, SEED);
        Random random = new Random(SEED + number);
        int one = random.nextInt(HOSTS);
        int other = (one + 1 + random.nextInt(HOSTS - 1)) % HOSTS;
        String what = of + ": " + kind + " of host" + one + " and host" + other;
        List<Long> pids = new ArrayList<>();
        for (int rank = 0; rank < HOSTS; rank++) {
            pids.add(job.pid(rank));
        }
        long cutAt = System.nanoTime();
        plant(what, kind, one, other, 0);
        assertTold(what, one);
        assertTrue(losses(one).anyMatch(text -> names(text, other)),
                () -> what + ": rank " + one + " is told of another: " + losses(one).toList());
        double first = (System.nanoTime() - cutAt) / 1e9;
        if (kind != Cut.HALF_OPEN) {
            assertTold(what, other);
        }
        lift(kind, one, other);
        assertTold(what, other);
        // All ranks of the jobs ENGINE and GIN are connected to each other. The third rank may then exit first, and the
        // two ranks at the cut may report the loss of the third rank.
        if (kind == Cut.HALF_OPEN && (of.job == Job.TAKEOVER || of.job == Job.UNPACK)) {
            assertTrue(losses(other).anyMatch(text -> names(text, one)),
                    () -> what + ": rank " + other + " is told of another: " + losses(other).toList());
        }
        for (int rank = 0; rank < HOSTS; rank++) {
            String own = "lost the peer pid " + pids.get(rank) + " ";
            List<String> told = losses(rank).toList();
            assertTrue(told.stream().noneMatch(text -> text.contains(own)),
                    () -> what + ": told to have lost itself: " + told);
        }
        System.out.printf(Locale.ROOT, "%s: told after %.1f s and %.1f s%n", what, first,
                (System.nanoTime() - cutAt) / 1e9);
        for (Process process : job.processes) {
            if (!job.becomes(TIMEOUT, () -> !process.isAlive())) {
                throw new AssertionError(what + ": it does not end; see " + report(what) + "\n" + told());
            }
        }
        assertTrue(job.said().stream().noneMatch(each -> each.text().startsWith("DONE ")), this::told);
    }

    private void assertTold(String what, int rank) throws Exception {
        if (!job.becomes(LONG_TIMEOUT, () -> losses(rank).findAny().isPresent())) {
            throw new AssertionError(what + ": rank " + rank + " is not told; see " + report(what) + "\n" + told());
        }
    }

    private static boolean names(String loss, int peer) {
        return loss.contains(TestNetwork.name(peer)) || loss.contains("on " + TestNetwork.address(peer))
                || loss.contains("lost rank " + peer);
    }

    private Stream<String> losses(int rank) {
        return job.saidBy(rank)
                .stream()
                .filter(text -> text.contains("lost the peer") || text.contains(" lost rank ")
                        || text.startsWith("FAILED"));
    }

    /** Returns the number of seconds from the end of a cut until all ranks continued. */
    private double cut(String name, Cut kind, Random random) throws Exception {
        int one = random.nextInt(HOSTS);
        int other = (one + 1 + random.nextInt(HOSTS - 1)) % HOSTS;
        double square = random.nextDouble();
        int millis = SHORTEST_MILLIS + (int) (square * square * (LONGEST_MILLIS - SHORTEST_MILLIS));
        String what = name + String.format(Locale.ROOT, " at %.3f s: ", (System.nanoTime() - begun) / 1e9) + kind
                + " of host" + one + " and host" + other + " for " + millis + " ms";
        plant(what, kind, one, other, random.nextInt(2));
        Duration rest = Duration.ofMillis(millis);
        if (kind.stopsAll() && rest.compareTo(SETTLED) > 0) {
            job.await(SETTLED);
            rest = rest.minus(SETTLED);
            long done = job.furthest();
            job.await(rest);
            assertTrue(job.furthest() - done <= 1, () -> what + " did not stop them: " + done + ", " + job.furthest());
        } else if (kind.stopsAll()) {
            job.await(rest);
        }
        lift(kind, one, other);
        long lifted = System.nanoTime();
        long done = job.furthest();
        boolean soon = job.becomes(SOON, () -> job.rounds() > done + 1);
        String report = soon ? "" : "; see " + report(what);
        boolean goesOn = soon || job.becomes(TIMEOUT, () -> job.rounds() > done + 1);
        double seconds = (System.nanoTime() - lifted) / 1e9;
        if (CUTS > 0 || !soon) {
            System.out.printf(Locale.ROOT, "%s: %.3f s until all went on%s%n", what, seconds, report);
        }
        if (!goesOn) {
            throw new AssertionError(what + ": they do not go on" + report + "\n" + told());
        }
        return seconds;
    }

    private void plant(String what, Cut kind, int one, int other, int network) throws Exception {
        switch (kind) {
            case RESET -> assertTrue(this.network.reset(one, other) > 0, what + ": there was nothing to reset");
            case HALF_OPEN -> {
                silence(one, other);
                assertTrue(this.network.reset(one, other) > 0, what + ": there was nothing to reset");
            }
            case SILENT_ONE_WAY -> this.network.silence(one, other);
            case SILENT_BOTH_WAYS -> silence(one, other);
            case NO_ROUTE -> this.network.route(one, other, false);
            case UNPLUGGED -> this.network.plug(one, false);
            case ONE_INTERFACE -> {
                plugBack();
                unplugged = one;
                unpluggedInterface = network;
                this.network.plug(one, network, false);
            }
        }
    }

    private void silence(int one, int other) throws Exception {
        network.silence(one, other);
        network.silence(other, one);
    }

    private void plugBack() throws Exception {
        if (unplugged >= 0) {
            network.plug(unplugged, unpluggedInterface, true);
        }
    }

    private void lift(Cut kind, int one, int other) throws Exception {
        switch (kind) {
            case HALF_OPEN, SILENT_BOTH_WAYS -> {
                network.hear(one, other);
                network.hear(other, one);
            }
            case SILENT_ONE_WAY -> network.hear(one, other);
            case NO_ROUTE -> network.route(one, other, true);
            case UNPLUGGED -> {
                network.plug(one, true);
                if (unplugged == one) {
                    network.plug(one, unpluggedInterface, false);
                }
            }
            case RESET, ONE_INTERFACE -> {
                // The network works after a reset. The interface stays unplugged until the next cut of this kind.
            }
        }
    }

    private void assertEndsRight(Case of) throws Exception {
        for (Process process : job.processes) {
            process.getOutputStream().close();
        }
        for (Process process : job.processes) {
            boolean ends = job.becomes(TIMEOUT, () -> !process.isAlive());
            if (!ends) {
                throw new AssertionError(of + " does not end; see " + report(of + " at its end") + "\n" + told());
            }
            assertEquals(0, process.exitValue(), () -> of + ": " + told());
        }
        int told = of.job == Job.ENGINE ? HOSTS : 1;
        job.await("the last words",
                () -> job.said().stream().filter(each -> each.text().startsWith("DONE ")).count() >= told);
        assertTrue(job.said().stream().noneMatch(each -> each.text().startsWith("FAILED")), this::told);
    }

    /** Writes a report about everything that the threads and connections of the ranks wait for. */
    private Path report(String what) throws Exception {
        Files.createDirectories(REPORTS);
        Path report = REPORTS.resolve(what.replaceAll("[^A-Za-z0-9]+", "_") + ".txt");
        StringBuilder text = new StringBuilder(what).append('\n');
        for (int host = 0; host < HOSTS; host++) {
            text.append("\n== host").append(host).append("\n").append(job.why(host)).append('\n');
            text.append(network.hosts.get(host).run("ss -tanoi; ip neighbour; ip route; ip -br address"));
            for (TracedProcess process : job.traces(host)) {
                text.append("\n== pid ").append(process.identity()).append('\n');
                process.connections().forEach(each -> text.append(each).append('\n'));
                text.append(threads(process.identity().pid()));
            }
        }
        text.append(told());
        return Files.writeString(report, text);
    }

    private String told() {
        return job.said()
                .stream()
                .filter(each -> !each.text().contains("NET/Millrace: set ") && !each.text().contains(": warm-up: "))
                .map(each -> String.format(Locale.ROOT, "%.3f rank %d: %s%n", (each.time() - begun) / 1e9, each.rank(),
                        each.text()))
                .collect(Collectors.joining());
    }

    private static String threads(long pid) throws IOException {
        return new String(
                new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "jstack").toString(), "" + pid)
                        .redirectErrorStream(true)
                        .start()
                        .getInputStream()
                        .readAllBytes());
    }
}
