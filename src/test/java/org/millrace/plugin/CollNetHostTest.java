package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.plugin.HostProgram.Outcome;

/**
 * The C host uses the collective network table as NCCL's proxy does, with slots, groups of channels and windows. Each
 * rank is a process. As in NCCL, a group's memory is unmapped before the group is closed.
 */
@Tag("slow")
class CollNetHostTest {

    /** Number of operations: one for each pair of type and operator. */
    private static final int OPERATIONS = 48;
    private static final int OPERATIONS_UNDER_TLS = 8;

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

    /** A request covers at most eight channels: with twenty channels there are requests of eight, eight and four. */
    @ParameterizedTest
    @CsvSource({"8, auto, 2, 2", "12, socket, 3, 9", "9, plugin, 2, 20"})
    void everyTypeAndOperatorOfEveryFunction(int version, String network, int ranks, int channels) throws Exception {
        Outcome outcome = run(version, network, ranks, channels, OPERATIONS, "run");
        assertEnded(version, outcome);
        assertEquals(ranks, outcome.count(" ranks reduce for each other over "), outcome.output());
        assertEquals(3 * ranks, outcome.warnings().size(), "only those of handles that are none:\n" + outcome.output());
    }

    /** The ranks' connections use TLS and a secret. */
    @Test
    void underTlsRanksReduceForEachOther() throws Exception {
        Outcome outcome =
                underTls("sesame", "1", "").run(HostProgram.library(), 3, 3, OPERATIONS_UNDER_TLS, 0xa66, "run");
        assertEnded(12, outcome);
        assertEquals(3, outcome.count("3 ranks reduce for each other over socket"), outcome.output());
    }

    /** The last rank has another secret or does not use TLS. */
    @ParameterizedTest
    @CsvSource({"barley, 1", "sesame, 0"})
    void aRankWithAnotherSecretIsRefused(String secret, String tls) throws Exception {
        Outcome outcome = underTls(secret, tls, "2s").run(HostProgram.library(), 2, 2, 1, 0xa68, "refused");
        assertEnded(12, outcome);
        assertEquals(2, outcome.count("REFUSED "), outcome.output());
        assertTrue(
                outcome.warnings()
                        .stream()
                        .anyMatch(line -> line.contains("collNetConnect: rank 0 cannot connect to rank 1: ")),
                outcome.output());
    }

    /**
     * All ranks use TLS and one secret. In the mode {@code refused} the last rank uses the given secret and TLS
     * setting.
     */
    private static HostProgram underTls(String lastSecret, String lastTls, String deadline) throws Exception {
        return HostProgram.compile("collnet_host", "-DNET_VERSION=12")
                .withEveryCompiler() // encryption is slow in code that only C1 has compiled
                .withNetwork("socket")
                .with("MILLRACE_SECRET", "sesame")
                .with("MILLRACE_TLS", "1")
                .with("MILLRACE_TEST_LAST_SECRET", lastSecret)
                .with("MILLRACE_TEST_LAST_TLS", lastTls)
                .with("MILLRACE_CONNECT_DEADLINE", deadline);
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
