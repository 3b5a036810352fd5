package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.plugin.HostProgram.Outcome;

/** The plugin recognizes RCCL by its dynamic section, and RCCL keeps its own proxy. */
@Tag("slow")
class RcclHostTest {

    private static final String RCCL = "librccl.so.1";

    /** The host passes the address of four bytes and a canary after them, instead of a device handle. */
    @ParameterizedTest
    @CsvSource({"8, 0xa5a5a5a500000007", "9, 0xa5a5a5a500000007", "10, 0xa5a5a5a500000007", "11, 0xa5a5a5a500000007",
            "12, 0xa5a5a5a500000007", "12, 0", "8, 0"})
    void theBytesBehindAStructureOfFourBytesSurvive(int table, String bytes) throws Exception {
        Outcome outcome = runAsLibrary("net_host", RCCL, "-DNET_VERSION=" + table, "-DDEVICE_HANDLE=" + bytes);
        // tables without a context do not report the end of the last communicator
        keepsItsProxy(outcome, "RCCL 2.28.3 (", table < 11 ? 1 : 2);
        assertTrue(outcome.logLine(2).contains("net_host"), "the warning names the library: " + outcome.output());
    }

    @Test
    void aProgramWithRcclInsideNeedsHip() throws Exception {
        String hip = HostProgram.compileStub("hip.c", "libamdhip64.so.6").toString();
        Outcome outcome = HostProgram
                .compile("net_host", "-DNET_VERSION=12", "-Wl,--no-as-needed", "-L" + hip, "-l:libamdhip64.so.6")
                .with("LD_LIBRARY_PATH", hip)
                .run(HostProgram.library(), 200, 7, "threads");
        keepsItsProxy(outcome, "an RCCL of unknown version (", 2);
    }

    /** A program without a version is treated as NCCL: its memory is checked as usual. */
    @Test
    void aProgramWithNcclInsideIsTakenOver() throws Exception {
        Outcome outcome = HostProgram.compile("takeover_host", "-DNET_VERSION=12")
                .run(HostProgram.library(), "threads", 2, 200, 7, "small");
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(outcome.count("Java takes the proxy over") > 0, outcome.output());
    }

    @Test
    void aLibraryOfAnotherNameIsTakenOver() throws Exception {
        Outcome outcome = HostProgram.compile("nccls_host")
                .run(library("takeover_host", "libnccl.so.2", "-DNET_VERSION=12"), HostProgram.library(), "threads", 2,
                        200, 7, "small");
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings());
    }

    private static Outcome runAsLibrary(String host, String soname, String... definitions) throws Exception {
        return HostProgram.compile("nccls_host")
                .run(library(host, soname, definitions), HostProgram.library(), 200, 7, "threads");
    }

    private static String library(String host, String soname, String... definitions) throws Exception {
        String[] all = new String[definitions.length + 5];
        System.arraycopy(definitions, 0, all, 0, definitions.length);
        System.arraycopy(new String[] {"-DNCCL_CODE=22803", "-shared", "-fPIC", "-Dmain=play", "-Wl,-soname," + soname},
                0, all, definitions.length, 5);
        return HostProgram.compile(host, all).path().toString();
    }

    /** Checks that the plugin keeps the proxy of the library, and warns once for each opening of the plugin. */
    private static void keepsItsProxy(Outcome outcome, String name, int openings) {
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(openings, outcome.count("LOG 2 NET/Millrace: the takeover is not possible with " + name),
                outcome.output());
        assertTrue(outcome.logLine(2).contains("RCCL"), outcome.output());
        assertEquals(0, outcome.count("set NCCL_"), outcome.output());
    }
}
