package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.plugin.HostProgram.Outcome;

/**
 * Programs that set a handler of SIGSEGV after the plugin has started a JVM. Java's null pointers and safepoints raise
 * SIGSEGV, which the program's handler must not receive. The handler must receive the program's own faults.
 */
@Tag("slow")
class FaultHandlersTest {

    private static final Path JAVA_HOME = Path.of(System.getProperty("java.home"));
    private static final String JSIG = JAVA_HOME.resolve("lib/libjsig.so").toString();

    private static final String PROGRAM = """
            import ctypes, faulthandler, sys
            host = ctypes.CDLL(sys.argv[1])
            host.start(sys.argv[2].encode())
            faulthandler.enable()
            host.use_java()
            print("Java was used", flush=True)
            ctypes.string_at(8)
            """;

    private static HostProgram host(String... definitions) throws Exception {
        String include = "-I" + JAVA_HOME + "/include";
        return HostProgram.compile("faults_host",
                Stream.concat(Stream.of(include, include + "/linux"), Stream.of(definitions)).toArray(String[]::new));
    }

    /** libjsig redirects the program's calls itself. With libjsig the plugin therefore redirects no call. */
    @ParameterizedTest
    @CsvSource({"import, ", "signal, ", "later, ", "import, libjsig"})
    void aHandlerThatIsSetThroughAnImportComesBehindTheJvms(String way, String preloaded) throws Exception {
        Outcome outcome = host().with("LD_PRELOAD", preloaded == null ? null : JSIG)
                .run(HostProgram.library(), way, host("-DLATER", "-shared", "-fPIC").path());
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings(), outcome.output());
        assertTrue(outcome.endsWith("OK\n"), outcome.output());
    }

    /**
     * The program is linked at fixed addresses and resolves imports at their first call. In such a program, the address
     * of an imported function is the address of a jump within the program.
     */
    @Test
    void aProgramAtFixedAddressesComesBehindTheJvm() throws Exception {
        Outcome outcome = host("-fno-pie", "-no-pie", "-Wl,-z,lazy").run(HostProgram.library(), "import");
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings(), outcome.output());
    }

    /**
     * The program replaces the JVM's handler by a call that the plugin cannot redirect. The next call of the plugin
     * installs the JVM's handler again. In the mode {@code forwarding}, the program's handler calls the JVM's handler.
     */
    @ParameterizedTest
    @ValueSource(strings = {"dlsym", "raw", "forwarding"})
    void aHandlerThatIsSetInAnotherWayIsRepairedWithOneWarning(String way) throws Exception {
        Outcome outcome = host().run(HostProgram.library(), way);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(1, outcome.warnings().size(), outcome.output());
        assertTrue(outcome.logLine(2).endsWith("LD_PRELOAD=" + JSIG), outcome.output());
    }

    /** In a program with a sanitizer, the dynamic linker finds the sanitizer's sigaction before the C library's. */
    @Test
    void aProgramWithAddressSanitizerComesBehindTheJvm() throws Exception {
        Outcome outcome =
                host("-fsanitize=address").with("ASAN_OPTIONS", "detect_leaks=0").run(HostProgram.library(), "import");
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings(), outcome.output());
    }

    @Test
    void pythonsFaulthandlerReportsOnlyPythonsFaults(@TempDir Path directory) throws Exception {
        assumeTrue(hasPython(), "no python3");
        Path program = Files.writeString(directory.resolve("program.py"), PROGRAM);
        Outcome outcome = host("-shared", "-fPIC").with("MILLRACE_JAVA_OPTS", "-XX:ErrorFile=/dev/null")
                .startedBy(List.of("python3", program.toString()))
                .run(HostProgram.library());
        int used = outcome.output().indexOf("Java was used");
        int fault = outcome.output().indexOf("Fatal Python error: Segmentation fault");
        assertTrue(used >= 0 && fault > used, outcome.output());
        assertTrue(outcome.output().indexOf("in string_at", fault) > 0, outcome.output());
    }

    private static boolean hasPython() throws Exception {
        try {
            Process python = new ProcessBuilder("python3", "-c", "import ctypes").redirectErrorStream(true).start();
            return python.waitFor(1, TimeUnit.MINUTES) && python.exitValue() == 0;
        } catch (IOException absent) {
            return false;
        }
    }
}
