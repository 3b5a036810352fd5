package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The C host receives into several buffers at once, by tags. Messages of one tag arrive in order, and messages of other
 * tags overtake them. Some messages are empty, and some are shorter than their buffers.
 */
@Tag("slow")
class GroupedReceivesTest {

    private static HostProgram host(int version, String network) throws Exception {
        return HostProgram.compile("groups_host", "-DNET_VERSION=" + version)
                .withNetwork(network)
                .with("MILLRACE_TAKEOVER", "0")
                .with("NCCL_NET_MAX_RECVS", "8");
    }

    @ParameterizedTest
    @CsvSource({"8, auto, 8", "12, socket, 8", "10, plugin, 3"})
    void everyMessageFindsTheBufferOfItsTag(int version, String network, int tags) throws Exception {
        var outcome = host(version, network).run(HostProgram.library(), tags, 40, 0x9709 + version, "run");
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.endsWith("OK ncclNetPlugin_v" + version + "\n"), outcome.output());
        assertEquals(2, outcome.count(", up to 8 buffers at once"), outcome.output());
    }

    @Test
    void whoLosesTheSenderGetsAnError() throws Exception {
        var outcome = host(11, "auto").run(HostProgram.library(), 8, 40, 0x9709, "kill");
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.warnings().stream().anyMatch(line -> line.contains("connection lost")), outcome.output());
    }
}
