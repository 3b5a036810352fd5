package org.millrace.plugin.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.config.ConfigurationException;
import org.millrace.ffi.plugin.ncclNetProperties_v12_t;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.plugin.CallerStructuresTest;
import org.millrace.plugin.HostProgram;
import org.millrace.plugin.loss.LossWatch;

/** GIN's tables, with a C host that posts the descriptors of NCCL's kernels. */
@Tag("slow")
class GinHostTest {

    private static final int PUTS = 60;
    private static final int ADDS = 40;
    private static final int NUMBERS = 5 * 30;
    private static final Pattern DRIVER_CALLS = Pattern
            .compile("(\\d+) copies within devices, (\\d+) with the host, 0 in the program's context\n(\\d+) events");

    private static final Pattern IN_ROWS =
            Pattern.compile("in all (\\d+) copies that a kernel could hold up, (\\d+) in rows");

    @ParameterizedTest
    @CsvSource({"11, 2, socket", "12, 2, shm", "13, 3, ucx", "14, 2, plugin", "14, 3, shm behind a link",
            "15, 2, socket"})
    void whatKernelsPutArrivesBeforeItsSignal(int version, int ranks, String network) throws Exception {
        runs(version, version == 13 ? 1 : 2, ranks, network);
    }

    @ParameterizedTest
    @Tag("nightly")
    @CsvSource({"11, 3, shm", "12, 3, socket", "13, 2, shm", "13, 3, socket", "14, 2, socket", "14, 3, shm",
            "15, 3, shm", "14, 2, ucx tcp", "11, 3, plugin"})
    void inMoreCombinations(int version, int ranks, String network) throws Exception {
        runs(version, version == 13 ? 1 : 2, ranks, network);
    }

    /** Kernels of a program that was built with NCCL 2.30.3 or 2.30.4 are served under a later libnccl 2.30. */
    @Test
    void kernelsOf30_3AreServedByLaterReleases() throws Exception {
        runs(14, 1, 2, "shm");
        runs(15, 1, 2, "shm");
    }

    private static void runs(int version, int backend, int ranks, String network) throws Exception {
        long seed = 0x61_6e + version * 100L + ranks;
        boolean inspected = version == 15;
        HostProgram host = inspected
                ? HostProgram.compile("gin_host", "-DGIN_VERSION=15", "-DBACKEND=" + backend, "-DNCCL_CODE=23206",
                        "-rdynamic")
                : HostProgram.compile("gin_host", "-DGIN_VERSION=" + version, "-DBACKEND=" + backend);
        var outcome = host.with("MILLRACE_GIN", "host")
                .withNetwork(network)
                .run(inspected ? CallerStructuresTest.inspected("{23206,8},").toAbsolutePath() : HostProgram.library(),
                        ranks, PUTS, seed);
        assertEquals(0, outcome.exit(), () -> "seed " + seed + "\n" + outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(outcome.endsWith("OK ncclGinPlugin_v" + version + "\n"), outcome.output());
        int communicators = 2;
        int others = version >= 13 ? 1 + ADDS + NUMBERS : 0;
        assertEquals((PUTS + others) * ranks * ranks * communicators, served(outcome.output()),
                "what the log says that Java served");
    }

    /** A process that uses only GIN also writes a trace. No other means can report that a peer's host is silent. */
    @Test
    void aProcessWhoseNetworkIsAnotherPluginHasATraceToo() throws Exception {
        var outcome = HostProgram.compile("gin_host", "-DGIN_VERSION=14", "-DBACKEND=2")
                .with("MILLRACE_GIN", "host")
                .with("NCCL_PROXY_TRACE", "1")
                .withNetwork("socket")
                .run(HostProgram.library(), 2, PUTS, 1);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(1, outcome.count("proxies write their steps to "), outcome.output());
    }

    private static HostProgram onStub(String network) throws Exception {
        return HostProgram.compile("gin_host", "-DGIN_VERSION=14", "-DBACKEND=2")
                .with("LD_LIBRARY_PATH", HostProgram.compileStub("cuda.c", "libcuda.so.1").toString())
                .with("MILLRACE_CUDART_LIBRARY",
                        HostProgram.compileStub("cudart_on_driver.c", "libcudart.so.12").toString())
                .with("MILLRACE_NET", network);
    }

    /** The kernel that makes small copies is launched, but never starts. */
    @Test
    @Tag("nightly")
    void aCopyKernelThatNeverStartsIsDoneWithout() throws Exception {
        var outcome = onStub("shm").with("STUB_CUDA_HANGS", "1").run(HostProgram.library(), 2, PUTS, 0x5e6, "ss");
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(2, outcome.count("make small copies too (the kernel that makes small copies does not respond"),
                outcome.output());
        assertTrue(outcome.endsWith("OK ncclGinPlugin_v14\n"), outcome.output());
    }

    /**
     * Windows on a device of a CUDA stub. Each letter is the memory of one window: h for host memory, d for a device's
     * memory, s for a device's memory in several physical segments. n is host memory that other processes' devices can
     * map. p is like n, but no processor can access this memory.
     */
    @ParameterizedTest
    @CsvSource({"ss, shm, 1, 1", "ss, socket, 0, 0", "dn, shm, 1, 1", "nd, shm, 0, 1", "hs, socket, 1, 0",
            "np, shm, 1, 1", "ph, socket, 1, 1"})
    void windowsOfAnyMemory(String windows, String network, int direct, int shared) throws Exception {
        var outcome = onStub(network).with("MILLRACE_GIN_DIRECT", Integer.toString(direct))
                .with("MILLRACE_GIN_SHARED", Integer.toString(shared))
                .with("STUB_CUDA_NO_BATCH", windows.equals("dn") ? "1" : null)
                .run(HostProgram.library(), 2, PUTS, 0x5e6, windows);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(2, outcome.count("make small copies too (the kernel that copies could not be launched)"),
                outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(outcome.endsWith("OK ncclGinPlugin_v14\n"), outcome.output());
        boolean mapped = direct == 1 && windows.charAt(1) != 'h';
        assertEquals(mapped,
                outcome.output().lines().anyMatch(line -> line.matches(".*window 2 of.*mapped here of rank 1.*")),
                outcome.output());
        MatchResult calls = DRIVER_CALLS.matcher(outcome.output()).results().findFirst().orElseThrow();
        long copies = Long.parseLong(calls.group(1)) + Long.parseLong(calls.group(2));
        assertTrue(Long.parseLong(calls.group(3)) < copies, "short copies share events: " + calls.group());
        Matcher rows = IN_ROWS.matcher(outcome.output());
        assertTrue(rows.find(), outcome.output());
        boolean segments = windows.contains("s"); // a copy of rows cannot cross two segments
        assertTrue(Long.parseLong(rows.group(1)) <= (segments ? 10 : 0),
                "none waits for the time slice of another context's kernel: " + rows.group());
        assertTrue(!windows.startsWith("s") || Long.parseLong(rows.group(2)) > 0, rows.group());
        if (windows.equals("ss") || windows.equals("dn")) {
            assertEquals(windows.equals("dn") ? 1 : 0, outcome.count("in all 0 copies begun by 0 calls for many"),
                    "a driver that refuses a batch gets single copies: " + outcome.output());
        }
    }

    @ParameterizedTest
    @CsvSource({"0, build the program with the headers of the NCCL that it loads", "3, use a newer Millrace"})
    void backendsThatAreNotKnownAreRefusedWithWhatToDo(int backend, String advice) {
        GinPlugin plugin = new GinPlugin(name -> null, new LossWatch(), () -> false);
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> plugin.ginCreateContext(14, 0, 1, 1, 1, 0, backend, 0, 0));
        assertTrue(refused.getMessage().contains(advice), refused.getMessage());
    }

    /**
     * GIN's device and the network's device are one node of NCCL's topology. The device that is reported first
     * determines the kinds of memory that NCCL uses with this node.
     */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void itsDeviceTakesTheMemoryOfGpusIfNetsDoes(boolean taken) {
        GinPlugin plugin = new GinPlugin(Map.of("NCCL_SOCKET_IFNAME", "lo")::get, new LossWatch(), () -> taken);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment properties = arena.allocate(ncclNetProperties_v12_t.layout());
            plugin.ginGetProperties(14, 0, properties.address());
            assertEquals(plugin_h.NCCL_PTR_HOST() | plugin_h.NCCL_PTR_DMABUF() | (taken ? plugin_h.NCCL_PTR_CUDA() : 0),
                    ncclNetProperties_v12_t.ptrSupport(properties));
        }
    }

    /**
     * Returns the number of descriptors that Java served, over all contexts. Each context prints the number of its
     * descriptors when it is closed.
     */
    private static long served(String output) {
        return Pattern.compile("context \\d+: descriptors served by Java: (\\d+) ")
                .matcher(output)
                .results()
                .mapToLong(line -> Long.parseLong(line.group(1)))
                .sum();
    }

    @ParameterizedTest
    @CsvSource({"14, 2, socket", "15, 3, shm", "16, 3, ucx", "17, 2, plugin", "17, 3, shm", "14, 3, shm"})
    void whatTheHostPutsAndGetsIsOverWhenItIsTold(int version, int ranks, String network) throws Exception {
        var outcome = HostProgram.compile("rma_host", "-DRMA_VERSION=" + version)
                .with("MILLRACE_GIN", "host")
                .withNetwork(network)
                .run(HostProgram.library(), ranks, 12);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(outcome.endsWith("OK ncclRmaPlugin_v" + version + "\n"), outcome.output());
    }
}
