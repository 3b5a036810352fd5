package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.plugin.HostProgram.Outcome;

/** The plugin recognizes the library that calls it, and adapts its log and its takeover to this library. */
@Tag("slow")
class RcclHostTest {

    private static final String RCCL = "librccl.so.1";
    private static final String HIP = "libamdhip64.so.6";
    /** Number of the level WARN in RCCL and NCCLX. The hosts convert it to NCCL's number before they print it. */
    private static final String LEVELS = "-DWARN_LEVEL=3";
    private static final String UNKNOWN_LAYOUT = "how its memory is laid out is not known";

    /**
     * In place of the address for a device handle, RCCL passes the address of four bytes on its stack. A canary follows
     * these bytes. This RCCL keeps its own proxy, so the plugin must store no handle there, and all messages arrive.
     * The bytes are not 0, so that a wrongly stored null pointer is detected.
     */
    @ParameterizedTest
    @ValueSource(ints = {8, 12})
    void theBytesBehindAStructureOfFourBytesSurvive(int table) throws Exception {
        Outcome outcome = host(
                library("net_host", RCCL, 22803, "-DNET_VERSION=" + table, "-DON_STACK=0xa5a5a5a500000007", LEVELS),
                "threads", "1");
        keepsItsProxy(outcome, "RCCL 2.28.3 (", "if it uses AINIC cards");
        assertTrue(outcome.logLine(2).contains("net_host"), "the warning names the library: " + outcome.output());
    }

    /**
     * An RCCL that is taken over passes an address that holds no pointer to a device handle. No setting shows that this
     * RCCL uses AINIC cards. The plugin stores nothing at the address, and RCCL cannot connect. The plugin refuses
     * every address on the stack. It refuses an address in the heap if the value there is not null, because RCCL
     * initializes a pointer to a handle to null.
     */
    @ParameterizedTest
    @CsvSource({"8, ON_STACK=0xa5a5a5a500000007", "12, ON_STACK=0xa5a5a5a500000007", "8, ON_STACK=0", "12, ON_STACK=0",
            "12, IN_HEAP=0xa5a5a5a500000007"})
    void aTakeoverStoresNoHandleElsewhere(int table, String place) throws Exception {
        Outcome outcome = HostProgram.compile("nccls_host")
                .with("RCCL_AINIC_ROCE", "0")
                .with("MILLRACE_TAKEOVER", "1")
                .run(library("net_host", RCCL, 22803, "-DNET_VERSION=" + table, "-D" + place, LEVELS),
                        HostProgram.library(), 200, 7, "refused");
        assertEquals(0, outcome.exit(), outcome.output());
        for (String function : List.of("connect", "accept")) {
            assertEquals(1, outcome.count("LOG 2 NET/Millrace: " + function + ": RCCL 2.28.3 ("), outcome.output());
            assertEquals(2, outcome.count(" passes no address for a device handle"), outcome.output());
        }
    }

    @ParameterizedTest
    @Tag("nightly")
    @ValueSource(ints = {9, 10, 11})
    void soItIsWithEveryTable(int table) throws Exception {
        theBytesBehindAStructureOfFourBytesSurvive(table);
        aTakeoverStoresNoHandleElsewhere(table, "ON_STACK=0xa5a5a5a500000007");
        aTakeoverStoresNoHandleElsewhere(table, "ON_STACK=0");
    }

    /** A release of RCCL with an unknown layout keeps its own proxy. */
    @ParameterizedTest
    @CsvSource({"22606, 2.26.6, -DWARN_LEVEL=2", "23102, 2.31.2, -DWARN_LEVEL=3"})
    void anRcclWithAnUnknownLayout(int version, String name, String levels) throws Exception {
        Outcome outcome = host(library("net_host", RCCL, version, "-DNET_VERSION=12", levels), "threads", "");
        keepsItsProxy(outcome, "RCCL " + name + " (", UNKNOWN_LAYOUT);
    }

    @Test
    void aProgramWithRcclInsideNeedsHip() throws Exception {
        Outcome outcome =
                needsHip("net_host", "-DNET_VERSION=12", LEVELS).run(HostProgram.library(), 200, 7, "threads");
        keepsItsProxy(outcome, "an RCCL of unknown version (", UNKNOWN_LAYOUT);
    }

    /** The program, and not the library with RCCL inside, is linked with HIP. */
    @Test
    void aLibraryWithRcclInsideCallsHip() throws Exception {
        Outcome outcome = needsHip("nccls_host").run(
                library("net_host", "libtorch_hip.so", 23102, "-DNET_VERSION=12", "-DCALLS_HIP", LEVELS),
                HostProgram.library(), 200, 7, "threads");
        keepsItsProxy(outcome, "RCCL 2.31.2 (", UNKNOWN_LAYOUT);
    }

    /**
     * The plugin finds the imports of a program that exports nothing, and of a program with the older hash table of
     * symbols.
     */
    @ParameterizedTest
    @ValueSource(strings = {"-fPIC -no-pie", "-Wl,--hash-style=sysv"})
    void aProgramWithRcclInsideCallsHip(String options) throws Exception {
        List<String> all = new ArrayList<>(List.of(options.split(" ")));
        all.addAll(List.of("-DNET_VERSION=12", "-DCALLS_HIP", LEVELS));
        Outcome outcome = HostProgram.compile("net_host", linked("libwraps_hip.so", all.toArray(String[]::new)))
                .with("LD_LIBRARY_PATH", stub(HIP))
                .run(HostProgram.library(), 200, 7, "threads");
        keepsItsProxy(outcome, "an RCCL of unknown version (", UNKNOWN_LAYOUT);
    }

    /** In a read-only dynamic section, the dynamic linker leaves addresses as they are in the file. */
    @Test
    void aLibraryMayHaveAReadOnlyDynamicSection(@TempDir Path directory) throws Exception {
        Path file = directory.resolve("library");
        byte[] elf = Files.readAllBytes(Path.of(library("net_host", RCCL, 23102, "-DNET_VERSION=12", LEVELS)));
        ByteBuffer fields = ByteBuffer.wrap(elf).order(ByteOrder.LITTLE_ENDIAN);
        int headers = (int) fields.getLong(32);
        for (int header = headers; header < headers + 56 * fields.getShort(56); header += 56) {
            if (fields.getInt(header) == 2) { // PT_DYNAMIC
                fields.putInt(header + 4, 4); // PF_R
            }
        }
        Files.write(file, elf);
        keepsItsProxy(host(file.toString(), "threads", ""), "RCCL 2.31.2 (", UNKNOWN_LAYOUT);
    }

    @Test
    void aLibraryMayHaveItsOwnNamespace() throws Exception {
        Outcome outcome = HostProgram.compile("nccls_host", "-DNAMESPACE")
                .run(library("net_host", RCCL, 23102, "-DNET_VERSION=12", LEVELS), HostProgram.library(), 200, 7,
                        "threads");
        keepsItsProxy(outcome, "RCCL 2.31.2 (", UNKNOWN_LAYOUT);
    }

    private static HostProgram needsHip(String host, String... definitions) throws Exception {
        return HostProgram.compile(host, linked(HIP, definitions)).with("LD_LIBRARY_PATH", stub(HIP));
    }

    /** Returns the arguments of a compiler that links with HIP, or with another library that has HIP's functions. */
    private static String[] linked(String library, String... definitions) throws Exception {
        List<String> all = new ArrayList<>(List.of(definitions));
        all.addAll(List.of("-Wl,--no-as-needed", "-L" + stub(library), "-l:" + library));
        return all.toArray(String[]::new);
    }

    private static String stub(String library) throws Exception {
        return HostProgram.compileStub("hip.c", library).toString();
    }

    /** A library of another vendor may have NCCL's functions and versions. */
    @ParameterizedTest
    @ValueSource(strings = {"libmccl.so", "libhccl.so.2"})
    void aLibraryOfAnotherVendorKeepsItsProxy(String soname) throws Exception {
        Outcome outcome = host(library("net_host", soname, 22809, "-DNET_VERSION=12"), "threads", "");
        keepsItsProxy(outcome, "unknown library 2.28.9 (", UNKNOWN_LAYOUT);
    }

    /** A library without a SONAME has the name of its file. */
    @Test
    void theFileOfALibraryOfAnotherVendorNamesIt(@TempDir Path directory) throws Exception {
        Path file = directory.resolve("libmccl.so.2");
        Files.copy(Path.of(library("net_host", null, 22809, "-DNET_VERSION=12")), file);
        keepsItsProxy(host(file.toString(), "threads", ""), "unknown library 2.28.9 (", UNKNOWN_LAYOUT);
    }

    /** A library with another vendor's name does not count as RCCL, even if it needs HIP's library and calls it. */
    @Test
    void aLibraryOfAnotherVendorMayNeedHip() throws Exception {
        String library = library("net_host", "libhccl.so", 22809, linked(HIP, "-DNET_VERSION=12", "-DCALLS_HIP"));
        Outcome outcome = needsHip("nccls_host").run(library, HostProgram.library(), 200, 7, "threads");
        keepsItsProxy(outcome, "unknown library 2.28.9 (", UNKNOWN_LAYOUT);
    }

    /**
     * NCCLX 2.27 passes a logger that has one more parameter than NCCL's logger. If the plugin passed NCCL's arguments,
     * this logger would use the message as its format.
     */
    @Test
    void aLoggerWithAnotherSignatureIsNotCalled() throws Exception {
        Outcome outcome = HostProgram.compile("nccls_host")
                .with("MILLRACE_TAKEOVER", "0")
                .run(library("net_host", "libnccl.so.2", 22707, "-DNET_VERSION=10", "-DIS_NCCLX",
                        "-DLOGGER_NAMES_FUNCTION"), HostProgram.library(), 200, 7, "threads");
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(0, outcome.count("LOG "), outcome.output());
    }

    /**
     * A program may unload an NCCL library that has no communicators. The plugin must still log afterwards, also from
     * its own threads.
     */
    @ParameterizedTest
    @CsvSource({"12, 10", "11, 12"})
    void anUnloadedLibraryLogsLaterErrors(int first, int last) throws Exception {
        Outcome outcome = HostProgram.compile("nccls_host", "-DUNLOADS")
                .with("MILLRACE_TAKEOVER", "0")
                .run(library("net_host", "libnccl.so.2", 22809, "-DNET_VERSION=" + first), HostProgram.library(), 200,
                        7, "threads", "--", library("net_host", "libnccl.so.2", 22809, "-DNET_VERSION=" + last),
                        HostProgram.library(), 200, 7, "threads");
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.output().stripTrailing().endsWith("ALL OK"), outcome.output());
        assertTrue(outcome.output().lines().toList().reversed().get(1).startsWith("LOG 2 NET/Millrace: closeListen: "),
                outcome.output());
    }

    /** A library of any other name, such as libtorch_cuda.so, may contain a statically linked NCCL. */
    @ParameterizedTest
    @CsvSource({"libnccl.so.2, ", "libtorch_cuda.so, ", "libnccl.so.2, X"})
    void aLibraryIsTakenOver(String soname, String suffix) throws Exception {
        List<String> definitions = new ArrayList<>(List.of("-DNET_VERSION=12"));
        if (suffix != null) {
            definitions.addAll(List.of("-DIS_NCCLX", LEVELS));
        }
        Outcome outcome = HostProgram.compile("nccls_host")
                .run(library("takeover_host", soname, 23102, definitions.toArray(String[]::new)), HostProgram.library(),
                        "threads", 2, 200, 7, "small");
        isTakenOver(outcome, suffix == null ? "NCCL 2.31.2, connFifo entries of 32 bytes" : "NCCLX 2.31.2 (");
        assertTrue(outcome.count("LOG 3 NET/Millrace: Java ") > 0, outcome.output());
    }

    private static Outcome host(String library, String way, String ainic) throws Exception {
        return HostProgram.compile("nccls_host")
                .with("RCCL_AINIC_ROCE", ainic)
                .run(library, HostProgram.library(), 200, 7, way);
    }

    private static String library(String host, String soname, int version, String... definitions) throws Exception {
        List<String> all = new ArrayList<>(List.of(definitions));
        all.addAll(List.of("-DNCCL_CODE=" + version, "-shared", "-fPIC", "-Dmain=play"));
        if (soname != null) {
            all.add("-Wl,-soname," + soname);
        }
        return HostProgram.compile(host, all.toArray(String[]::new)).path().toString();
    }

    private static void isTakenOver(Outcome outcome, String name) {
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(outcome.count("network table v12 of " + name) > 0, outcome.output());
        assertTrue(outcome.count("Java takes the proxy over") > 0, outcome.output());
    }

    /** Checks that the library keeps its proxy, with one warning although the plugin is opened twice. */
    private static void keepsItsProxy(Outcome outcome, String name, String reason) {
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(1, outcome.count("LOG 2 NET/Millrace: the takeover is not possible with " + name),
                outcome.output());
        assertTrue(outcome.logLine(2).contains(reason), outcome.output());
        assertEquals(0, outcome.count("set NCCL_"), outcome.output());
    }
}
