package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The built shim in a process without Java. */
@Tag("slow")
class PluginHostTest {

    private static final int EXIT_BY_SIGTERM = 128 + 15;

    /** Compiles a host that makes progress itself, by isend, irecv and test. */
    private static HostProgram withNcclsProxy(int version) throws Exception {
        return HostProgram.compile("net_host", "-DNET_VERSION=" + version).with("MILLRACE_TAKEOVER", "0");
    }

    @ParameterizedTest
    @ValueSource(ints = {8, 9, 10, 11, 12})
    void everyVersionMovesMessagesInOrderAndIsReopenedByNcclsDefaultName(int version) throws Exception {
        long seed = 0x5eed + version;
        var outcome = withNcclsProxy(version).run(HostProgram.library(), 200, seed, "threads");
        assertEquals(0, outcome.exit(), () -> "seed " + seed + "\n" + outcome.output());
        assertTrue(outcome.endsWith("OK ncclNetPlugin_v" + version + "\n"), outcome.output());
    }

    @ParameterizedTest
    @ValueSource(ints = {8, 12})
    void severalStreamsOfOneConnectionKeepTheOrder(int version) throws Exception {
        var outcome = withNcclsProxy(version).with("NCCL_NSOCKS_PERTHREAD", "3")
                .run(HostProgram.library(), 100, 77, "processes");
        assertEquals(0, outcome.exit(), outcome.output());
    }

    @ParameterizedTest
    @ValueSource(strings = {"threads", "return", "exit", "atexit"})
    void threadsAndTheProcessEndWithTheJvmInIt(String way) throws Exception {
        var outcome = HostProgram.compile("exit_host").run(HostProgram.library(), way);
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.endsWith("OK\n"), outcome.output());
    }

    /**
     * At exit, the process opens its own traces. Any user can create a named pipe with the name of such a trace. A
     * blocking open of the pipe would wait for a writer.
     */
    @Test
    void aPipeByTheNameOfTheProcesssTraceDoesNotHoldUpItsExit() throws Exception {
        var outcome = HostProgram.compile("exit_host").run(HostProgram.library(), "pipe");
        assertEquals(0, outcome.exit(), outcome.output());
        Matcher pipe = Pattern.compile("(/dev/shm/millrace-fed-\\S+)\nOK\n").matcher(outcome.output());
        assertTrue(pipe.find() && Files.deleteIfExists(Path.of(pipe.group(1))), outcome.output());
    }

    /** A program with its own JVM runs twice: with Millrace on the class path of that JVM, and without. */
    @Test
    void aJvmThatTheProcessHasAlreadyIsUsedIfMillraceIsOnItsClassPath() throws Exception {
        String javaHome = System.getProperty("java.home");
        HostProgram host =
                HostProgram.compile("jvm_host", "-I" + javaHome + "/include", "-I" + javaHome + "/include/linux");
        String classPath = HostProgram.classPath();
        var outcome = host.with("MILLRACE_JAR", null)
                .with("MILLRACE_JAVA_HOME", "/nowhere")
                .run(HostProgram.library(), javaHome, classPath);
        assertTrue(outcome.endsWith("RESULT 0\n"), outcome.output());
        outcome = host.run(HostProgram.library(), javaHome, "/nowhere");
        assertEquals("NET/Millrace: this process runs a JVM, whose class path needs millrace.jar:"
                + " java.lang.NoClassDefFoundError: " + "org/millrace/plugin/PluginEntry"
                + " (is Millrace of this release there?). NCCL will use another network", outcome.logLine(2));
        assertTrue(outcome.endsWith("RESULT 2\n"), outcome.output());
    }

    @Test
    void theHostsSignalHandlersStayItsOwn() throws Exception {
        var outcome = HostProgram.compile("signals_host").run(HostProgram.library());
        assertEquals(EXIT_BY_SIGTERM, outcome.exit(), outcome.output());
        assertTrue(outcome.endsWith("OK\n"), outcome.output());
    }
}
