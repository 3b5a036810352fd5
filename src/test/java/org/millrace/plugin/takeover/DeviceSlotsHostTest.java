package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.plugin.HostProgram;

/**
 * The slots of protocol Simple are in a device's memory, which no processor can access. The kernels of the C host check
 * every byte. The device is a stub of CUDA's driver. It makes copies late, in parts, and out of order. Memory that NCCL
 * has freed is unmapped, so a later copy of this memory ends the process.
 */
@Tag("slow")
class DeviceSlotsHostTest {

    private static final int CHANNELS = 3;
    private static final int STEPS = 300;
    private static final Pattern COPIES = Pattern
            .compile("rank (\\d): (\\d+) copies within devices, (\\d+) with the host, 0 in the program's context");

    @ParameterizedTest
    @CsvSource({"11, threads, shm, 2, none, small", "12, processes, auto, 2, none, usual",
            "8, processes, socket, 1, none, small", "12, processes, shm, 1, STUB_CUDA_NO_EXPORT, small",
            "12, processes, shm, 2, STUB_CUDA_NO_IMPORT, small", "12, processes, plugin, 1, none, small"})
    void allThatKernelsSendArrives(int version, String way, String network, int threads, String fault, String sizes)
            throws Exception {
        takesOver(version, way, network, threads, fault, sizes);
    }

    @ParameterizedTest
    @Tag("nightly")
    @CsvSource({"12, processes, shm, 1, none, small", "12, threads, socket, 2, none, usual",
            "9, threads, plugin, 2, none, small"})
    void inMoreCombinations(int version, String way, String network, int threads, String fault, String sizes)
            throws Exception {
        takesOver(version, way, network, threads, fault, sizes);
    }

    private static void takesOver(int version, String way, String network, int threads, String fault, String sizes)
            throws Exception {
        var outcome = host(version, network, threads).with("HOST_SLOTS", "device")
                .with(fault, "1")
                .run(HostProgram.library(), way, CHANNELS, STEPS, 0x5eed + version, sizes);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(0, outcome.warnings().size(), outcome.output());
        MatchResult copies = COPIES.matcher(outcome.output())
                .results()
                .findFirst()
                .orElseThrow(() -> new AssertionError(outcome.output()));
        long within = Long.parseLong(copies.group(2));
        long withHost = Long.parseLong(copies.group(3));
        if (network.equals("plugin")) { // the plugin of the network registers the GPU's memory by its DMA-BUF
            assertEquals(0, within + withHost, outcome.output());
        } else if (network.equals("socket") || !fault.equals("none")) {
            assertEquals(0, within, outcome.output());
            assertTrue(withHost > STEPS, outcome.output());
        } else {
            assertTrue(within > STEPS, outcome.output());
        }
        assertEquals(
                fault.equals(
                        "none") ? 0 : 1,
                Math.min(1, outcome.count(fault.endsWith("EXPORT") ? "other processes cannot map slots"
                        : "payloads of the peer's device go through the host's memory")),
                outcome.output());
    }

    /**
     * If a device has no room for Millrace's context, copies share the program's context. The plugin logs a warning.
     */
    @Test
    void noContextOfTheirOwn() throws Exception {
        var outcome = host(12, "shm", 1).with("HOST_SLOTS", "device")
                .with("STUB_CUDA_NO_CONTEXT", "1")
                .run(HostProgram.library(), "threads", CHANNELS, STEPS, 0x5eed, "small");
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(1, outcome.warnings().size(), outcome.output());
        assertEquals(1, outcome.count("copies share the program's context"), outcome.output());
    }

    /**
     * NCCL asks its topology whether the network can read GPU memory. If the network cannot, NCCL places slots in host
     * memory.
     */
    @ParameterizedTest
    @CsvSource({"processes, shm", "threads, socket"})
    void slotsInTheHostsMemoryAllTheSame(String way, String network) throws Exception {
        var outcome = host(12, network, 1).with("HOST_SLOTS", "apart")
                .run(HostProgram.library(), way, CHANNELS, STEPS, 0x5eed, "small");
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(0, outcome.warnings().size(), outcome.output());
    }

    private static HostProgram host(int version, String network, int threads) throws Exception {
        return HostProgram.compile("takeover_host", "-DNET_VERSION=" + version)
                .with("LD_LIBRARY_PATH", HostProgram.compileStub("cuda.c", "libcuda.so.1").toString())
                .with("MILLRACE_DEVICE_SLOTS", "1")
                .withNetwork(network)
                .with("MILLRACE_THREADS", Integer.toString(threads));
    }
}
