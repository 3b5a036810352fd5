package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.plugin.HostProgram;

/** What a host is told whose connections cannot be taken over, or who asks for what a taken one does not do. */
@Tag("slow")
class TakeoverRefusalTest {

    private static HostProgram.Outcome refuse(HostProgram host, String way) throws Exception {
        var outcome = host.run(HostProgram.library(), way);
        assertEquals(0, outcome.exit(), outcome.output());
        return outcome;
    }

    private static HostProgram host() throws Exception {
        return HostProgram.compile("refusal_host", "-DNET_VERSION=12");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"gap | the SIMPLE buffer is at 0x[0-9a-f]+ and not behind the one before, at 0x[0-9a-f]+",
                    "sentinel | the size of slot 3 is 0 where -1 was expected",
                    "started | head is 8 where 0 was expected", "mode | the mode of slot 5 is 1 where 0 was expected"})
    void memoryThatIsNotAsNcclLaysItOut(String way, String what) throws Exception {
        var outcome = refuse(host(), way);
        assertTrue(outcome.logLine(2)
                .matches("NET/Millrace: regMr: cannot take this connection over: " + what
                        + "\\. Its memory is not laid out as by NCCL 2\\.28 to 2\\.30; MILLRACE_TAKEOVER=0 leaves"
                        + " it to NCCL's proxy"),
                outcome.output());
    }

    /** NCCL does without a handle for memory of the user's, so it is no warning. */
    @Test
    void memoryOfTheUsers() throws Exception {
        var outcome = refuse(host(), "fourth");
        assertEquals(16, outcome.count(
                "bytes of the user's are not registered, as Java serves the connection: they go" + " through slots"),
                outcome.output());
        assertEquals(0, outcome.count("LOG 2 "), outcome.output());
    }

    @Test
    void anNcclWhoseProxyGoesOnByItself() throws Exception {
        var outcome = refuse(host(), "proxy");
        for (String operation : new String[] {"isend", "irecv"}) {
            assertEquals(2,
                    outcome.count("LOG 2 NET/Millrace: " + operation
                            + ": NCCL's proxy asks for progress of a connection that was taken over: is this NCCL older"
                            + " than 2.28, or newer than 2.30?"),
                    outcome.output());
        }
    }

    @Test
    void ranksThatAreServedInDifferentWays() throws Exception {
        var outcome = refuse(host().with("MILLRACE_TAKEOVER_1", "0"), "services");
        String line = "LOG 2 NET/Millrace: connect: the receiving rank is served another way than this one (here: ";
        assertEquals(1, outcome.count(line + "NCCL's proxy moves the data"), outcome.output());
        assertEquals(1, outcome.count(line + "Java takes the proxy over"), outcome.output());
        assertEquals(2, outcome.count("give MILLRACE_TAKEOVER and the NCCL_* settings the same values on every rank"),
                outcome.output());
    }

    /**
     * One rank's user has a setting that forbids the takeover: the warning says which, and the peers find out when they
     * connect.
     */
    @Test
    void aSettingOnOneRankThatForbidsTheTakeover() throws Exception {
        var outcome = refuse(host().with("NCCL_GDRCOPY_ENABLE_1", "1"), "services");
        assertEquals(1,
                outcome.count(
                        "the takeover is not possible with NCCL_GDRCOPY_ENABLE=1 (with GDRCopy the counters lie in the"
                                + " GPU's memory"),
                outcome.output());
        assertEquals(2, outcome.count("the receiving rank is served another way than this one"), outcome.output());
    }
}
