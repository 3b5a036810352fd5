package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The C host with kernels that gather received data from pages (UNPACK). It runs with a takeover and with NCCL's own
 * proxy, over a network that scatters data and over a network that does not.
 */
@Tag("slow")
class UnpackHostTest {

    private static final int CHANNELS = 3;

    private static HostProgram unpacking(String program, int version, String network) throws Exception {
        return HostProgram.compile(program, "-DNET_VERSION=" + version)
                .with("MILLRACE_UNPACK", "host")
                .with("MILLRACE_UNPACK_MIB", "32")
                .withNetwork(network);
    }

    @ParameterizedTest
    @CsvSource({"11, threads, shm, small, 1500", "12, processes, socket, small, 1500",
            "8, processes, auto, usual, 300"})
    void kernelsOfATakenConnectionFindAllDataInTheirLists(int version, String way, String network, String sizes,
            int steps) throws Exception {
        long seed = 0xbeef + version;
        var outcome = unpacking("takeover_host", version, network).run(HostProgram.library(), way, CHANNELS, steps,
                seed, sizes);
        assertEquals(0, outcome.exit(), () -> "seed " + seed + "\n" + outcome.output());
        assertTrue(outcome.endsWith("OK ncclNetPlugin_v" + version + "\n"), outcome.output());
        assertEquals(0, outcome.count("LOG 2 "),
                () -> "nothing is wrong, and so nobody is warned:\n" + outcome.output());
        assertTrue(outcome.count("kernels unpack from a bounce buffer of 32 MiB") > 0, outcome.output());
    }

    @ParameterizedTest
    @CsvSource({"8, socket, processes", "9, shm, threads", "10, shm, processes", "11, auto, threads",
            "12, socket, threads"})
    void soDoThoseThatNcclsProxyServes(int version, String network, String way) throws Exception {
        long seed = 0xbeef + version;
        var outcome = unpacking("net_host", version, network).with("MILLRACE_TAKEOVER", "0")
                .run(HostProgram.library(), 120, seed, way);
        assertEquals(0, outcome.exit(), () -> "seed " + seed + "\n" + outcome.output());
        assertTrue(outcome.endsWith("OK ncclNetPlugin_v" + version + "\n"), outcome.output());
    }
}
