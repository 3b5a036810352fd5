package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.collnet.aggregator.AggregatorProcess;

class CollNetCommandTest {

    @Test
    void anAggregatorSaysWhereItIs() {
        Run run = Run.of("collnet", "aggregator", "--listen", "127.0.0.1:0", "--for", "1ms");
        assertEquals(0, run.status(), run.toString());
        assertTrue(run.out().matches("(?s)listening on 127.0.0.1:[1-9]\\d*\\s+groups: 0\\s+"), run.toString());
        assertFalse(run.err().contains("MILLRACE_SECRET"), run.toString());
    }

    @Test
    void whoeverReachesItIsToldOrRefused() {
        Run open = Run.of("collnet", "aggregator", "--listen", "0.0.0.0:0", "--for", "1ms");
        assertEquals(0, open.status(), open.toString());
        assertTrue(open.err().contains("set MILLRACE_SECRET"), open.toString());
        for (String where : new String[] {"0.0.0.0:0", "127.0.0.1:0"}) {
            Run refused = Run.of("collnet", "aggregator", "--listen", where, "--for", "1ms", "-D",
                    "MILLRACE_REQUIRE_SECRET=1");
            assertEquals(2, refused.status(), refused.toString());
            assertTrue(refused.err().contains("MILLRACE_REQUIRE_SECRET=1 wants a secret"), refused.toString());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"here", "127.0.0.1:x", "no.such.host.invalid:7070"})
    void aPlaceThatIsNoneIsRefused(String place) {
        Run run = Run.of("collnet", "aggregator", "--listen", place, "--for", "1ms");
        assertEquals(2, run.status(), run.toString());
        assertTrue(run.err().contains("--listen=" + place), run.toString());
    }

    /** As Ctrl-C ends it: its ranks are told, and the last line is printed, before the process is gone. */
    @Test
    @Tag("slow")
    void whoEndsItHearsWhatItDid() throws Exception {
        try (AggregatorProcess aggregator = AggregatorProcess.start("", "0")) {
            assertEquals("groups: 0\n143", aggregator.end());
        }
    }

    @Test
    void withoutASubcommandItSaysWhichThereAre() {
        Run run = Run.of("collnet");
        assertEquals(2, run.status(), run.toString());
        assertTrue(run.err().contains("collnet aggregator"), run.toString());
    }
}
