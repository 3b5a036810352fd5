package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** GIN's tables, with a host in C that posts what NCCL's kernels post. */
class GinHostTest {

    private static final int PUTS = 60;

    @ParameterizedTest
    @CsvSource({"11, 2, socket", "11, 3, shm", "12, 2, shm", "12, 3, socket", "14, 2, socket", "14, 3, shm"})
    void whatKernelsPutArrivesBeforeItsSignal(int version, int ranks, String network) throws Exception {
        long seed = 0x61_6e + version * 100L + ranks;
        var outcome = HostProgram.compile("gin_host", "-DGIN_VERSION=" + version).withQuickStart().with("MILLRACE_GIN", "host").with("MILLRACE_NET", network)
                .run(HostProgram.library(), ranks, PUTS, seed);
        assertEquals(0, outcome.exit(), () -> "seed " + seed + "\n" + outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(outcome.output().endsWith("OK ncclGinPlugin_v" + version + "\n"), outcome.output());
        int communicators = 2;
        int gets = version == 14 ? 1 : 0;
        assertEquals((PUTS + gets) * ranks * ranks * communicators, served(outcome.output()), "what the log says that Java served");
    }

    /** The sum over the lines that contexts leave. */
    private static long served(String output) {
        return Pattern.compile("context \\d+: descriptors served by Java: (\\d+) ").matcher(output).results().mapToLong(line -> Long.parseLong(line.group(1))).sum();
    }

    @ParameterizedTest
    @CsvSource({"2, socket", "3, shm"})
    void whatTheHostPutsAndGetsIsOverWhenItIsTold(int ranks, String network) throws Exception {
        var outcome = HostProgram.compile("rma_host").withQuickStart().with("MILLRACE_GIN", "host").with("MILLRACE_NET", network).run(HostProgram.library(), ranks, 12);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(outcome.output().endsWith("OK ncclRmaPlugin_v14\n"), outcome.output());
    }
}
