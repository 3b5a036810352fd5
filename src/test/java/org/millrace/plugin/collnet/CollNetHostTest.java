package org.millrace.plugin.collnet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.agent.IdleProfile;
import org.millrace.collnet.aggregator.AggregatorProcess;
import org.millrace.collnet.aggregator.AggregatorService;
import org.millrace.config.Configuration;
import org.millrace.net.socket.stream.SocketOptions;
import org.millrace.net.tls.TlsIdentity;
import org.millrace.plugin.HostProgram;
import org.millrace.plugin.HostProgram.Outcome;

/**
 * The C host that drives the collective network table as NCCL's proxy does: slots, groups of channels, windows. Each
 * rank is a process; the memory of a group is unmapped before the group is closed.
 */
@Tag("slow")
class CollNetHostTest {

    /** As many as there are pairs of type and operator. */
    private static final int OPERATIONS = 48;

    private static Outcome run(int version, String network, int ranks, int channels, int operations, String way)
            throws Exception {
        return HostProgram.compile("collnet_host", "-DNET_VERSION=" + version)
                .withNetwork(network)
                .with("MILLRACE_THREADS", "3")
                .run(HostProgram.library(), ranks, channels, operations, 0xc011 + version, way);
    }

    private static void assertEnded(int version, Outcome outcome) {
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.endsWith("OK ncclCollNetPlugin_v" + version + "\n"), outcome.output());
    }

    /** Twenty channels make requests of eight, eight and four. */
    @ParameterizedTest
    @CsvSource({"8, auto, 2, 2", "12, socket, 3, 9", "9, plugin, 2, 20"})
    void everyTypeAndOperatorOfEveryFunction(int version, String network, int ranks, int channels) throws Exception {
        Outcome outcome = run(version, network, ranks, channels, OPERATIONS, "run");
        assertEnded(version, outcome);
        assertEquals(ranks, outcome.count(" ranks reduce for each other over "), outcome.output());
        assertEquals(3 * ranks, outcome.warnings().size(), "only those of handles that are none:\n" + outcome.output());
    }

    /** The same through processes of their own, here this one. */
    @ParameterizedTest
    @CsvSource({"11, 0", "12, 1"})
    void aggregatorsElsewhereReduce(int version, String tls) throws Exception {
        try (AggregatorService one = aggregator(tls); AggregatorService other = aggregator(tls)) {
            Outcome outcome = elsewhere(version, "sesame", tls,
                    "127.0.0.1:" + one.where().getPort() + ", 127.0.0.1:" + other.where().getPort())
                    .run(HostProgram.library(), 3, 9, OPERATIONS, 0xa66, "run");
            assertEnded(version, outcome);
            assertEquals(3, outcome.count("3 ranks are reduced for by 127.0.0.1:"), outcome.output());
            assertEquals(1, one.served());
            assertEquals(1, other.served());
        }
    }

    @ParameterizedTest
    @CsvSource({"10, 0", "11, 1"})
    void allRanksNameAnAggregatorThatIsKilled(int version, String tls) throws Exception {
        try (AggregatorProcess killed = AggregatorProcess.start("sesame", tls);
                AggregatorService other = aggregator(tls)) {
            Outcome outcome =
                    elsewhere(version, "sesame", tls, killed.where() + ",127.0.0.1:" + other.where().getPort())
                            .with("MILLRACE_TEST_AGGREGATOR", "" + killed.pid())
                            .run(HostProgram.library(), 3, 9, 8, 0xa67, "lose");
            assertEnded(version, outcome);
            assertEquals(3, outcome.count("LOST "), outcome.output());
            for (int rank = 0; rank < 3; rank++) {
                String says = "the collective network of rank " + rank + " has ended: the aggregator at "
                        + killed.where() + ": ";
                assertTrue(outcome.warnings().stream().anyMatch(line -> line.contains(says)), outcome.output());
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"barley, 0, 0", "barley, 1, 1", "sesame, 1, 0", "sesame, 0, 1"})
    void whoDoesNotKnowTheSecretIsTurnedAway(String secret, String tls, String tlsThere) throws Exception {
        try (AggregatorService service = aggregator(tlsThere)) {
            String where = "127.0.0.1:" + service.where().getPort();
            Outcome outcome = elsewhere(11, secret, tls, where).run(HostProgram.library(), 2, 2, 1, 0xa68, "refused");
            assertEnded(11, outcome);
            assertEquals(2, outcome.count("REFUSED "), outcome.output());
            for (int rank = 0; rank < 2; rank++) {
                String says = "rank " + rank + " cannot connect with the aggregator at " + where + ": ";
                assertTrue(
                        outcome.warnings()
                                .stream()
                                .anyMatch(line -> line.contains(says)
                                        && line.contains("with the same MILLRACE_SECRET and MILLRACE_TLS?")),
                        outcome.output());
            }
            assertEquals(0, service.served());
        }
    }

    /** Ranks that other processes reduce for. */
    private static HostProgram elsewhere(int version, String secret, String tls, String aggregators) throws Exception {
        HostProgram host = HostProgram.compile("collnet_host", "-DNET_VERSION=" + version);
        if (tls.equals("1")) {
            host.withEveryCompiler(); // records take long where C1 alone compiles
        }
        return host.withNetwork(tls.equals("1") ? "socket" : "auto")
                .with("MILLRACE_SECRET", secret)
                .with("MILLRACE_TLS", tls)
                .with("MILLRACE_COLLNET_AGGREGATORS", aggregators)
                .with("MILLRACE_SOCKET_ADDRESSES", "127.0.0.1");
    }

    private static AggregatorService aggregator(String tls) {
        InetAddress here = InetAddress.getLoopbackAddress();
        Configuration configuration = Configuration.load(Map.of("MILLRACE_SECRET", "sesame", "MILLRACE_TLS", tls));
        return new AggregatorService(
                SocketOptions.defaults().withRails(List.of(here)).withTls(TlsIdentity.of(configuration)),
                new InetSocketAddress(here, 0), "sesame", Duration.ofSeconds(60),
                () -> IdleProfile.rank(10, 10, 100_000));
    }

    @Test
    void ranksWaitForTheLateOneAndGoOn() throws Exception {
        assertEnded(10, run(10, "auto", 3, 4, 6, "late"));
    }

    @ParameterizedTest
    @CsvSource({"11, auto", "12, socket"})
    void whoLosesARankGetsAnErrorThatNamesIt(int version, String network) throws Exception {
        Outcome outcome = run(version, network, 3, 4, 8, "kill");
        assertEnded(version, outcome);
        assertEquals(2, outcome.count("LOST "), outcome.output());
        assertTrue(outcome.warnings()
                .stream()
                .anyMatch(line -> line.matches(".*collNet(Test|AllReduce|AllGather|ReduceScatter): the collective"
                        + " network of rank \\d has ended: .* connection lost .*")),
                outcome.output());
    }

    @Test
    void aGroupThatIsAbortedTouchesItsMemoryNoMore() throws Exception {
        Outcome outcome = run(11, "auto", 3, 4, 3, "abort");
        assertEnded(11, outcome);
        assertEquals(3, outcome.count("LOST "), outcome.output());
    }

    @Test
    void ranksThatDisagreeAreTold() throws Exception {
        Outcome outcome = run(12, "auto", 2, 4, 4, "disagree");
        assertEnded(12, outcome);
        assertTrue(outcome.count("the ranks disagree: rank ") > 0, outcome.output());
    }
}
