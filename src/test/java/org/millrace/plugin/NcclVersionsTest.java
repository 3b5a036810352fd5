package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.plugin.HostProgram.Outcome;

/** The plugin identifies the calling NCCL and adapts to it. The C hosts report a version as libnccl does. */
@Tag("slow")
class NcclVersionsTest {

    private static final String TOO_NEW =
            "LOG 2 NET/Millrace: the takeover is not possible with NCCL 2.33.1 (%s), which"
                    + " is newer than this Millrace: how its memory is laid out is not known. NCCL's proxy serves the "
                    + "connections; MILLRACE_TAKEOVER=0 selects it without this warning";

    /**
     * Builds a host program as a shared library that acts as an NCCL of a given version. A process can load several
     * such libraries at once.
     */
    private static String library(String host, int table, int version) throws Exception {
        return HostProgram
                .compile(host, "-DNET_VERSION=" + table, "-DNCCL_CODE=" + version, "-shared", "-fPIC", "-Dmain=play")
                .path()
                .toString();
    }

    /**
     * The fallback serves an NCCL that is too new for a takeover, because the fallback needs no knowledge of NCCL's
     * memory. Of NCCL's variables, the plugin sets only the one that keeps NCCL's own proxy from LL128.
     */
    @ParameterizedTest
    @CsvSource({"threads, 1", "processes, 2"})
    void anNcclThatIsTooNewRunsByItsOwnProxy(String way, int processes) throws Exception {
        HostProgram host = HostProgram.compile("net_host", "-DNET_VERSION=12", "-DNCCL_CODE=23301", "-rdynamic");
        Outcome outcome = host.run(HostProgram.library(), 200, 7, way);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(processes, outcome.count(TOO_NEW.formatted(host.path())), outcome.output());
        assertTrue(outcome.count("set NCCL_LL128_C2C=0") > 0, outcome.output());
        assertEquals(outcome.count("set NCCL_LL128_C2C=0"), outcome.count("set NCCL_"), outcome.output());
        // Each of two processes prints this line once. A single process prints the line in each of its two runs.
        assertEquals(2, outcome.count("network table v12 of NCCL 2.33.1 ("), outcome.output());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"MILLRACE_TAKEOVER | , and MILLRACE_TAKEOVER=1 requires it",
                    "MILLRACE_UNPACK | MILLRACE_UNPACK=1 is not possible with NCCL 2.33.1"})
    void whatTheUserInsistsOnIsRefusedThere(String setting, String what) throws Exception {
        Outcome outcome = HostProgram.compile("net_host", "-DNET_VERSION=12", "-DNCCL_CODE=23301", "-rdynamic")
                .with(setting, "1")
                .run(HostProgram.library(), 1, 7, "threads");
        assertEquals(1, outcome.exit(), outcome.output());
        assertTrue(outcome.logLine(2).contains(what), outcome.output());
    }

    /** Two NCCLs of one process use different layouts at the same time. */
    @ParameterizedTest
    @ValueSource(ints = {9, 12})
    void twoNcclsOfOneProcess(int table) throws Exception {
        Outcome outcome = HostProgram.compile("nccls_host")
                .run(library("takeover_host", table, 22809), HostProgram.library(), "threads", 2, 1000, 7, "small",
                        "--", library("takeover_host", table, 23102), HostProgram.library(), "threads", 2, 1000, 8,
                        "small");
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(0, outcome.warnings().size(), outcome.output());
        assertEquals(1, outcome.count(" of NCCL 2.28.9, connFifo entries of 24 bytes"), outcome.output());
        assertEquals(1, outcome.count(" of NCCL 2.31.2, connFifo entries of 32 bytes"), outcome.output());
    }

    /** One NCCL is taken over, and the other is too new and uses its own proxy. Neither affects the other. */
    @Test
    void anNcclThatIsTooNewBesideAKnownOne() throws Exception {
        String tooNew = library("net_host", 12, 23301);
        Outcome outcome = HostProgram.compile("nccls_host")
                .run(library("takeover_host", 12, 23007), HostProgram.library(), "threads", 2, 1000, 7, "small", "--",
                        tooNew, HostProgram.library(), 200, 8, "threads");
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.count(TOO_NEW.formatted(tooNew)) > 0, outcome.output());
        assertTrue(outcome.count("network table v12 of NCCL 2.30.7, connFifo entries of 24 bytes") > 0,
                outcome.output());
    }
}
