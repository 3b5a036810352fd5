package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code MILLRACE_CHECK} under a C host whose connections are taken over. */
@Tag("slow")
class PayloadCheckHostTest {

    private static HostProgram host(String network) throws Exception {
        return HostProgram.compile("takeover_host", "-DNET_VERSION=11", "-DNCCL_CODE=23007", "-rdynamic")
                .withNetwork(network)
                .with("MILLRACE_CHECK", "1");
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket"})
    void aChangedBitIsReportedByTakeover(String network) throws Exception {
        var right = host(network).run(HostProgram.library(), "processes", 2, 300, 7, "small");
        assertEquals(0, right.exit(), right.output());
        assertEquals(0, right.count("LOG 2 "), right.output());
        var wrong = host(network).with("MILLRACE_FAULT", "flip:frame=40,bit=3")
                .run(HostProgram.library(), "processes", 2, 300, 7, "small");
        assertNotEquals(0, wrong.exit(), wrong.output());
        assertTrue(wrong.count("differs from the payload that was sent") > 0, wrong.output());
    }
}
