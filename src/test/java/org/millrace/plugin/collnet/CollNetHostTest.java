package org.millrace.plugin.collnet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.agent.IdleProfile;
import org.millrace.collnet.aggregator.AggregatorService;
import org.millrace.net.socket.stream.SocketOptions;
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
        assertTrue(outcome.output().endsWith("OK ncclCollNetPlugin_v" + version + "\n"), outcome.output());
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
    @Test
    void aggregatorsElsewhereReduce() throws Exception {
        InetAddress here = InetAddress.getLoopbackAddress();
        try (AggregatorService one = aggregator(here); AggregatorService other = aggregator(here)) {
            Outcome outcome = HostProgram.compile("collnet_host", "-DNET_VERSION=11")
                    .withNetwork("auto")
                    .with("MILLRACE_COLLNET_AGGREGATORS",
                            "127.0.0.1:" + one.where().getPort() + ", 127.0.0.1:" + other.where().getPort())
                    .with("MILLRACE_SOCKET_ADDRESSES", "127.0.0.1")
                    .run(HostProgram.library(), 3, 9, OPERATIONS, 0xa66, "run");
            assertEnded(11, outcome);
            assertEquals(3, outcome.count("3 ranks are reduced for by 127.0.0.1:"), outcome.output());
            assertEquals(1, one.served());
            assertEquals(1, other.served());
        }
    }

    private static AggregatorService aggregator(InetAddress here) {
        return new AggregatorService(SocketOptions.defaults().withRails(List.of(here)), new InetSocketAddress(here, 0),
                "", Duration.ofSeconds(60), () -> IdleProfile.rank(10, 10, 100_000));
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
