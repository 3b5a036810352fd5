package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.plugin.HostProgram;

/**
 * Error messages about connections that cannot be taken over, and about operations that a connection does not support
 * after a takeover.
 */
@Tag("slow")
class TakeoverRefusalTest {

    private static HostProgram.Outcome refuse(HostProgram host, String way) throws Exception {
        var outcome = host.run(HostProgram.library(), way);
        assertEquals(0, outcome.exit(), outcome.output());
        return outcome;
    }

    private static HostProgram host(String... definitions) throws Exception {
        return HostProgram.compile("refusal_host",
                Stream.concat(Stream.of("-DNET_VERSION=12", "-rdynamic"), Stream.of(definitions))
                        .toArray(String[]::new));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"gap | the SIMPLE buffer is at 0x[0-9a-f]+ and not behind the one before, at 0x[0-9a-f]+",
                    "sentinel | with connFifo entries of 24 bytes the size of slot 3 is 0 where -1 was expected; with"
                            + " connFifo entries of 32 bytes the size of slot 0 is 0 where -1 was expected\\. This "
                            + "is an NCCL of unknown version",
                    "started | with connFifo entries of 24 bytes head is 8 where 0 was expected; with connFifo entries"
                            + " of 32 bytes head is 8 where 0 was expected\\. This is an NCCL of unknown version",
                    "mode | with connFifo entries of 24 bytes the mode of slot 5 is 1 where 0 was expected; with"
                            + " connFifo entries of 32 bytes the size of slot 0 is 0 where -1 was expected\\. This "
                            + "is an NCCL of unknown version"})
    void memoryThatIsNotAsNcclLaysItOut(String way, String what) throws Exception {
        refuses(refuse(host(), way), what);
    }

    /** The memory has another layout than the version implies. The plugin then refuses the takeover. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                    "23007 | 31 | with connFifo entries of 24 bytes the size of slot 0 is 0 where -1 was expected: it has"
                            + " connFifo entries of 32 bytes\\. This is NCCL 2\\.30\\.7",
                    "23206 | 28 | with connFifo entries of 32 bytes the size of slot 0 is 0 where -1 was expected: it has"
                            + " connFifo entries of 24 bytes\\. This is NCCL 2\\.32\\.6"})
    void anNcclWhoseMemoryIsNotThatOfItsVersion(int version, int fifo, String what) throws Exception {
        refuses(refuse(host("-DNCCL_CODE=" + version, "-DFIFO_VERSION=" + fifo), "as it is"), what);
    }

    /** The error for an NCCL with RCCL's layout in memory names this layout. The plugin does not use the layout. */
    @Test
    void anNcclWithTheMemoryOfRccl() throws Exception {
        refuses(refuse(host("-DNCCL_CODE=22803", "-DRCCL=64"), "as it is"),
                "with connFifo entries of 24 bytes the size of slot 0 is 0 where -1 was expected: it has connFifo"
                        + " entries of 24 bytes at offset 64\\. This is NCCL 2\\.28\\.3");
    }

    @Test
    void anRcclWithTheMemoryOfNccl() throws Exception {
        refuses(refuse(HostProgram.compileRccl("refusal_host", 22803, 0, "-DNET_VERSION=11"), "as it is"),
                "with connFifo entries of 24 bytes at offset 64 the size of slot 0 is 0 where -1 was expected: it has"
                        + " connFifo entries of 24 bytes\\. This is RCCL 2\\.28\\.3 \\(.*\\)");
    }

    private static void refuses(HostProgram.Outcome outcome, String what) {
        assertTrue(outcome.logLine(2)
                .matches("NET/Millrace: regMr: cannot take this connection over, as its memory is laid out in a way"
                        + " that is not known: " + what + "\\. MILLRACE_TAKEOVER=0 leaves it to NCCL's proxy"),
                outcome.output());
    }

    /** The plugin does not register the user's buffers. NCCL then uses slots instead, so the plugin logs no warning. */
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
                    outcome.count("LOG 2 NET/Millrace: " + operation + ": the proxy of an NCCL of unknown version "
                            + "asks for progress of a connection that was taken over; MILLRACE_TAKEOVER=0"
                            + " leaves all connections to it"),
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
     * One rank has a setting that forbids the takeover. Its warning names the setting, and its peers learn of the
     * refusal when they connect.
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
