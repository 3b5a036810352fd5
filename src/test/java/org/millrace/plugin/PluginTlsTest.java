package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** C hosts that behave as libnccl does. Their ranks send all data under TLS, and check every byte. */
@Tag("slow")
class PluginTlsTest {

    private static HostProgram underTls(HostProgram host) {
        return host.with("MILLRACE_NET", "socket")
                .with("MILLRACE_TLS", "1")
                .with("MILLRACE_SECRET", "of the job")
                .withEveryCompiler();
    }

    private static HostProgram takeover() throws Exception {
        return underTls(HostProgram.compile("takeover_host", "-DNET_VERSION=12").with("MILLRACE_THREADS", "1"));
    }

    private static HostProgram.Outcome runs(HostProgram host, Object... arguments) throws Exception {
        HostProgram.Outcome outcome = host.run(arguments);
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.output().lines().toList().getLast().startsWith("OK "), outcome.output());
        return outcome;
    }

    @Test
    void whatIsTakenOverTravelsUnderTls() throws Exception {
        runs(takeover(), HostProgram.library(), "processes", 2, 200, 7, "small");
    }

    @Test
    void ginTravelsUnderTls() throws Exception {
        runs(underTls(HostProgram.compile("gin_host", "-DGIN_VERSION=14", "-DBACKEND=2")
                .with("MILLRACE_GIN", "host")
                .with("MILLRACE_GIN_SHARED", "0")), HostProgram.library(), 2, 10, 9);
    }

    @Test
    void whatWouldTravelInClearIsRefused() throws Exception {
        refused("MILLRACE_TLS=1 is not possible with MILLRACE_NET=ucx", takeover().with("MILLRACE_NET", "ucx"));
        refused("MILLRACE_TLS=1 needs MILLRACE_SECRET", takeover().with("MILLRACE_SECRET", null));
        refused("MILLRACE_REQUIRE_SECRET=1: under libnccl only MILLRACE_TLS=1",
                takeover().with("MILLRACE_TLS", null).with("MILLRACE_REQUIRE_SECRET", "1"));
    }

    private static void refused(String why, HostProgram host) throws Exception {
        HostProgram.Outcome outcome = host.run(HostProgram.library(), "threads", 1, 10, 7, "small");
        assertNotEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.output().contains(why), outcome.output());
    }
}
