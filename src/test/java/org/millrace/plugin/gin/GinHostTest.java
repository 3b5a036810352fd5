package org.millrace.plugin.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.config.ConfigurationException;
import org.millrace.plugin.HostProgram;

/** GIN's tables, with a host in C that posts what NCCL's kernels post. */
@Tag("slow")
class GinHostTest {

    private static final int PUTS = 60;

    @ParameterizedTest
    @CsvSource({"11, 2, socket", "11, 3, shm", "12, 2, shm", "12, 3, socket", "13, 2, shm", "13, 3, socket",
            "14, 2, socket", "14, 3, shm", "13, 3, ucx", "14, 2, ucx tcp", "14, 2, plugin", "11, 3, plugin"})
    void whatKernelsPutArrivesBeforeItsSignal(int version, int ranks, String network) throws Exception {
        runs(version, version == 13 ? 1 : 2, ranks, network);
    }

    /** A program that was built with 2.30.3 or 2.30.4 and loads a later 2.30. */
    @Test
    void kernelsOf30_3AreServedByLaterReleases() throws Exception {
        runs(14, 1, 2, "shm");
    }

    private static void runs(int version, int backend, int ranks, String network) throws Exception {
        long seed = 0x61_6e + version * 100L + ranks;
        var outcome = HostProgram.compile("gin_host", "-DGIN_VERSION=" + version, "-DBACKEND=" + backend)
                .with("MILLRACE_GIN", "host")
                .withNetwork(network)
                .run(HostProgram.library(), ranks, PUTS, seed);
        assertEquals(0, outcome.exit(), () -> "seed " + seed + "\n" + outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(outcome.output().endsWith("OK ncclGinPlugin_v" + version + "\n"), outcome.output());
        int communicators = 2;
        int gets = version >= 13 ? 1 : 0;
        assertEquals((PUTS + gets) * ranks * ranks * communicators, served(outcome.output()),
                "what the log says that Java served");
    }

    @ParameterizedTest
    @CsvSource({"0, build the program with the headers of the NCCL that it loads", "3, use a newer Millrace"})
    void backendsThatAreNotKnownAreRefusedWithWhatToDo(int backend, String advice) {
        GinPlugin plugin = new GinPlugin(name -> null);
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> plugin.ginCreateContext(14, 0, 1, 1, 1, 0, backend, 0, 0));
        assertTrue(refused.getMessage().contains(advice), refused.getMessage());
    }

    /** The sum over the lines that contexts leave. */
    private static long served(String output) {
        return Pattern.compile("context \\d+: descriptors served by Java: (\\d+) ")
                .matcher(output)
                .results()
                .mapToLong(line -> Long.parseLong(line.group(1)))
                .sum();
    }

    @ParameterizedTest
    @CsvSource({"2, socket", "3, shm", "3, ucx", "2, plugin"})
    void whatTheHostPutsAndGetsIsOverWhenItIsTold(int ranks, String network) throws Exception {
        var outcome = HostProgram.compile("rma_host")
                .with("MILLRACE_GIN", "host")
                .withNetwork(network)
                .run(HostProgram.library(), ranks, 12);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(outcome.output().endsWith("OK ncclRmaPlugin_v14\n"), outcome.output());
    }
}
