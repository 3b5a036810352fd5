package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * C hosts that behave as libnccl does, with two rails between their ranks. Both rails carry bytes. The connection
 * survives the loss of one rail while frames are in flight. The hosts check every byte.
 */
@Tag("slow")
class PluginRailsTest {

    private static final String ADDRESSES = "127.0.0.1,127.0.0.2";
    private static final int CHANNELS = 2;
    private static final int STEPS = 400;
    private static final int PUTS = 60;
    private static final Pattern DELIVERED = Pattern.compile(
            "socket connection .*\\(2 rails\\): bytes delivered over rail 0 \\(127.0.0.1 to [^)]*127.0.0.1\\): (\\d+),"
                    + " rail 1 \\(127.0.0.2 to [^)]*127.0.0.2\\): (\\d+)");

    private static HostProgram takeover(int version) throws Exception {
        return HostProgram.compile("takeover_host", "-DNET_VERSION=" + version)
                .with("MILLRACE_NET", "socket")
                .with("MILLRACE_THREADS", "1")
                .with("MILLRACE_SOCKET_ADDRESSES", ADDRESSES);
    }

    private static HostProgram gin() throws Exception {
        return HostProgram.compile("gin_host", "-DGIN_VERSION=14", "-DBACKEND=2")
                .with("MILLRACE_GIN", "host")
                .with("MILLRACE_GIN_SHARED", "0")
                .with("MILLRACE_NET", "socket")
                .with("MILLRACE_SOCKET_ADDRESSES", ADDRESSES);
    }

    private static HostProgram.Outcome runs(HostProgram host, Object... arguments) throws Exception {
        HostProgram.Outcome outcome = host.run(arguments);
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.output().lines().toList().getLast().startsWith("OK "), outcome.output());
        return outcome;
    }

    /** Returns the number of bytes that a rail has delivered, summed over all connections. */
    private static long delivered(HostProgram.Outcome outcome, int rail) {
        return DELIVERED.matcher(outcome.output())
                .results()
                .mapToLong(line -> Long.parseLong(line.group(1 + rail)))
                .sum();
    }

    private static void bothRailsCarry(HostProgram.Outcome outcome) {
        long first = delivered(outcome, 0);
        long second = delivered(outcome, 1);
        assertTrue(Math.min(first, second) > (first + second) / 50, outcome.output());
    }

    @ParameterizedTest
    @CsvSource({"8, threads", "12, processes"})
    void bothRailsCarryWhatIsTakenOver(int version, String way) throws Exception {
        var outcome = runs(takeover(version), HostProgram.library(), way, CHANNELS, STEPS, 7, "usual");
        assertEquals(List.of(), outcome.warnings());
        bothRailsCarry(outcome);
    }

    /** Each rank cuts a rail of one of its connections. Both ends report the cut, and every byte arrives. */
    @Test
    void aRailThatIsCutUnderATakeoverIsSurvived() throws Exception {
        var outcome = runs(takeover(12).with("MILLRACE_FAULT", "cut:frame=300,rail=1"), HostProgram.library(),
                "processes", CHANNELS, STEPS, 8, "usual");
        assertLost(2, outcome);
    }

    @Test
    void bothRailsCarryWhatKernelsPut() throws Exception {
        var outcome = runs(gin(), HostProgram.library(), 2, PUTS, 9);
        assertEquals(List.of(), outcome.warnings());
        bothRailsCarry(outcome);
    }

    /**
     * Both ranks are threads of one process, so the process's connections 1 and 2 carry the data of both ranks. The
     * host creates two communicators one after the other. Each opens the network again, so each of the two cuts occurs
     * twice.
     */
    @Test
    void aRailThatIsCutUnderGinIsSurvived() throws Exception {
        var outcome =
                runs(gin().with("MILLRACE_FAULT", "cut:frame=30,rail=1,connection=1;cut:frame=40,rail=1,connection=2"),
                        HostProgram.library(), 2, PUTS, 10);
        assertLost(4, outcome);
    }

    private static void assertLost(int rails, HostProgram.Outcome outcome) {
        assertEquals(rails, outcome.count(") (cut on purpose): "), outcome.output());
        assertEquals(2 * rails, outcome.warnings().size(), outcome.output());
    }

    @Test
    void aFaultThatCannotHappenIsSaid() throws Exception {
        var outcome = runs(takeover(12).with("MILLRACE_FAULT", "cut:frame=9,rail=2"), HostProgram.library(), "threads",
                1, 50, 11, "small");
        assertEquals(1, outcome.warnings().size(), outcome.output());
        assertTrue(outcome.warnings().getFirst().contains("the planted fault cut:frame=9,rail=2"), outcome.output());
    }
}
