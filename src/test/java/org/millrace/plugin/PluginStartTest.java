package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.MillraceException;
import org.millrace.ffi.nccl.nccl_h;

/**
 * Message for the user if the plugin cannot start or does not start as configured. It is always one line, and NCCL
 * continues with another network.
 */
@Tag("slow")
class PluginStartTest {

    private static final int WARN = 2;

    @TempDir
    private static Path home;

    @BeforeAll
    static void anOldJava() throws Exception {
        Path server = Files.createDirectories(home.resolve("lib/server"));
        Files.createFile(server.resolve("libjvm.so"));
        Files.writeString(home.resolve("release"), "IMPLEMENTOR=\"Somebody\"\nJAVA_VERSION=\"17.0.9\"\n");
    }

    private static HostProgram host() throws Exception {
        return HostProgram.compile("start_host");
    }

    private static void assertRefused(HostProgram host, Path library, int result, String line) throws Exception {
        var outcome = host.run(library);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals("NET/Millrace: " + line, outcome.logLine(WARN));
        assertTrue(outcome.endsWith("RESULT " + result + "\n"), outcome.output());
    }

    private static void assertRefused(HostProgram host, String line) throws Exception {
        assertRefused(host, HostProgram.library(), nccl_h.ncclSystemError(), line + ". NCCL will use another network");
    }

    @Test
    void noJvmWhereTheUserSaysThatThereIsOne() throws Exception {
        assertRefused(host().with("MILLRACE_JAVA_HOME", "/nowhere"),
                "no Java 22 or newer was found; looked at MILLRACE_JAVA_HOME (/nowhere: no lib/server/libjvm.so"
                        + " there). Install one, or set MILLRACE_JAVA_HOME to its home");
    }

    @Test
    void aJvmThatIsTooOld() throws Exception {
        assertRefused(host().with("MILLRACE_JAVA_HOME", home.toString()),
                "no Java 22 or newer was found; looked at MILLRACE_JAVA_HOME (" + home
                        + ": Java 17). Install one, or set MILLRACE_JAVA_HOME to its home");
    }

    @Test
    void aNewerJavaIsTakenWhereJavaHomeIsTooOld() throws Exception {
        var outcome = host().with("MILLRACE_JAVA_HOME", null)
                .with("JAVA_HOME", home.toString())
                .with("PATH", System.getProperty("java.home") + "/bin")
                .run(HostProgram.library());
        assertTrue(outcome.endsWith("RESULT 0\n"), outcome.output());
    }

    /**
     * For containers, users create Java runtimes with few modules. Without a check at the start, a missing module would
     * cause an error only when the plugin uses the module.
     */
    @Test
    void aRuntimeThatLacksAModuleIsRefusedWithTheLineThatMakesTheRightOne(@TempDir Path directory) throws Exception {
        Path jlink = Path.of(System.getProperty("java.home"), "bin", "jlink");
        assumeTrue(Files.isExecutable(jlink), "this Java has no jlink");
        Path runtime = directory.resolve("runtime");
        Process linking =
                new ProcessBuilder(jlink.toString(), "--add-modules", "java.base", "--output", runtime.toString())
                        .inheritIO()
                        .start();
        assertEquals(0, linking.waitFor());
        String unfit = "the Java runtime " + runtime
                + " lacks the module jdk.net. Take a whole JDK, or make the runtime"
                + " with 'jlink --add-modules java.base,java.desktop,java.logging,java.management,java.naming,java.xml,"
                + "jdk.net,jdk.unsupported --output DIRECTORY'";
        var outcome = host().with("MILLRACE_JAVA_HOME", runtime.toString()).run(HostProgram.library());
        assertTrue(outcome.logLine(WARN).contains(": " + unfit), outcome.output());
        PluginInstaller installer = new PluginInstaller(WholeJar.write(directory.resolve("whole.jar")));
        assertEquals(unfit,
                assertThrows(MillraceException.class, () -> installer.install(directory.resolve("plugin"), runtime))
                        .getMessage());
        assertNull(RuntimeModules.problemHere());
        assertNull(RuntimeModules.incompleteHere());
    }

    @Test
    void noJar() throws Exception {
        assertRefused(host().with("MILLRACE_JAR", null), "there is no " + HostProgram.library().getParent()
                + "/millrace.jar; put one there with 'millrace plugin install', or set MILLRACE_JAR to one");
    }

    /**
     * In one case the folder's name has letters beyond ASCII, while no character encoding is configured. In the other
     * case the name contains the separator of class path entries.
     */
    @ParameterizedTest
    @ValueSource(strings = {"m\u00fchle \u6c34\u8eca", "a:b"})
    void aFolderOfAnyName(String name, @TempDir Path directory) throws Exception {
        assumeTrue(System.getProperty("sun.jnu.encoding").equals("UTF-8"), "no such folder can be made here");
        Path jar = WholeJar.write(directory.resolve("whole.jar"));
        Path library = new PluginInstaller(jar).install(directory.resolve(name), null);
        var outcome = host().with("MILLRACE_JAR", null).with("LC_ALL", "C").run(library);
        assertTrue(outcome.endsWith("RESULT 0\n"), outcome.output());
    }

    @Test
    void aJavaInAFolderWithAColon(@TempDir Path directory) throws Exception {
        Path server = Files.createDirectories(directory.resolve("a:b/lib/server"));
        Files.createFile(server.resolve("libjvm.so"));
        Path java = directory.resolve("a:b");
        assertRefused(host().with("MILLRACE_JAVA_HOME", java.toString()),
                "no Java 22 or newer was found; looked at MILLRACE_JAVA_HOME ("
                        + server.toRealPath().resolve("libjvm.so")
                        + ": a Java cannot run in a folder with a colon in its path). Install one, or set"
                        + " MILLRACE_JAVA_HOME to its home");
    }

    @Test
    void aJarOfSomethingElse() throws Exception {
        assertRefused(host().with("MILLRACE_JAR", home.toString()),
                home + ": java.lang.NoClassDefFoundError: org/millrace/plugin/PluginEntry (is Millrace of this release"
                        + " there?)");
    }

    @Test
    void aShimAndAJarOfDifferentReleases() throws Exception {
        Path library = HostProgram.compileShim("libnccl-net-other.so", "-DMILLRACE_PLUGIN_INTERFACE=999");
        HostProgram host = host();
        var outcome = host.run(library.toAbsolutePath());
        String line = outcome.logLine(WARN);
        assertTrue(line.contains("the plugin's interface is 999, and that of the jar " + Upcalls.VERSION), line);
        assertTrue(line.contains("install both anew with 'millrace plugin install'"), line);
        assertTrue(outcome.endsWith("RESULT 2\n"), outcome.output());
    }

    @Test
    void anOptionThatTheJvmDoesNotKnow() throws Exception {
        assertRefused(host().with("MILLRACE_JAVA_OPTS", "-XX:+NoSuchOption"),
                "the JVM " + System.getProperty("java.home")
                        + "/lib/server/libjvm.so did not start (-6): Unrecognized VM option 'NoSuchOption'; check"
                        + " MILLRACE_JAVA_OPTS");
    }

    /**
     * The plugin can pass on only a limited number of JVM options, and refuses a larger number. If it accepted a larger
     * number, it would silently ignore an option of the user.
     */
    @Test
    void moreOptionsThanCanBeTaken() throws Exception {
        String advice = ": put options into a file, and name it with -XX:VMOptionsFile=FILE";
        HostProgram host = host();
        String line = host.with("MILLRACE_JAVA_OPTS", "-Da=b ".repeat(70)).run(HostProgram.library()).logLine(WARN);
        assertTrue(line.matches("NET/Millrace: MILLRACE_JAVA_OPTS has 70 options, and at most \\d\\d can be taken"
                + advice + "\\. NCCL will use another network"), line);
        assertRefused(host.with("MILLRACE_JAVA_OPTS", "-Da=" + "b".repeat(4092)),
                "MILLRACE_JAVA_OPTS has 4096 bytes, and at most 4095 can be taken" + advice);
    }

    /**
     * Container images set variables with JVM options. A JVM exits if such an option contradicts the collector or the
     * class archive that the plugin configures. The plugin must then configure neither.
     */
    @ParameterizedTest
    @CsvSource({"JAVA_TOOL_OPTIONS, -XX:+UseG1GC -Xmx1g, ", "_JAVA_OPTIONS, -XX:+UseParallelGC, ",
            "JDK_JAVA_OPTIONS, -XX:+UseG1GC, ", "JAVA_TOOL_OPTIONS, -XX:+UseG1GC, -XX:+UseSerialGC",
            "JAVA_TOOL_OPTIONS, -Xshare:off, -XX:+UseParallelGC", ", , -XX:+UseG1GC"})
    void optionsOfTheEnvironmentAreObeyed(String variable, String value, String ours) throws Exception {
        HostProgram host = host().with("MILLRACE_JAVA_OPTS", ours);
        var outcome = (variable == null ? host : host.with(variable, value)).run(HostProgram.library());
        assertTrue(outcome.endsWith("RESULT 0\n"), outcome.output());
        assertEquals(variable == null || variable.startsWith("JDK") ? 0 : 1,
                outcome.count("LOG 3 NET/Millrace: the JVM is started with " + variable + "=" + value + ", too"),
                outcome.output());
    }

    @Test
    void anOptionOfTheEnvironmentThatTheJvmDoesNotKnow() throws Exception {
        assertRefused(host().with("_JAVA_OPTIONS", "-XX:+NoSuchOption"),
                "the JVM " + System.getProperty("java.home")
                        + "/lib/server/libjvm.so did not start (-6): Unrecognized VM option 'NoSuchOption'; check"
                        + " MILLRACE_JAVA_OPTS and _JAVA_OPTIONS");
    }

    /**
     * The stack is too small, or the call runs on a stack that is not the thread's own. On such a stack a JVM would end
     * the process, or class initializers would fail because no stack is left.
     */
    @ParameterizedTest
    @CsvSource({"thread, 64, has \\d+ KiB left of its stack", "thread, 128, has \\d+ KiB left of its stack",
            "coroutine, 64, is called on a stack that is not its thread's own",
            "coroutine, 4096, is called on a stack that is not its thread's own"})
    void aCallOnAStackThatJavaCannotRunOnIsRefused(String kind, int kibibytes, String line) throws Exception {
        var outcome = HostProgram.compile("stack_host").run(HostProgram.library(), kind, kibibytes);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(1, outcome.warnings().size(), outcome.output());
        assertTrue(Pattern.compile(line).matcher(outcome.logLine(WARN)).find(), outcome.output());
        assertEquals(List.of("RESULT 3", "RESULT 0"),
                outcome.output().lines().filter(said -> said.startsWith("RESULT")).toList());
    }

    /**
     * In a forked child, as with Python's multiprocessing, the JVM does not run. NCCL must receive an error in the
     * child.
     */
    @ParameterizedTest
    @ValueSource(strings = {"started", "starting", "unhandled"})
    void aForkedChildIsToldThatTheJvmIsNotInIt(String when) throws Exception {
        var outcome = HostProgram.compile("fork_host").run(HostProgram.library(), when);
        assertEquals(0, outcome.exit(), outcome.output());
        String line = outcome.logLine(WARN);
        assertTrue(
                line.matches("NET/Millrace: this process was forked from process \\d+, where the plugin's JVM runs: .*"
                        + " NCCL will use another network"),
                line);
        assertTrue(outcome.output().contains("CHILD 2 3\n"), outcome.output());
        assertTrue(outcome.endsWith("RESULT 0\n"), outcome.output());
    }

    /** A JVM with an impossible heap size calls exit. The host process must survive that call. */
    @Test
    void aJvmThatCannotInitializeItself() throws Exception {
        var outcome = host().with("MILLRACE_JAVA_OPTS", "-Xmx900000g").run(HostProgram.library());
        String line = outcome.logLine(WARN);
        assertTrue(line.matches("NET/Millrace: the JVM did not start: (OpenJDK .* warning: )?Error occurred during"
                + " initialization of VM Could not reserve enough space for 943718400000 KB object heap; check"
                + " MILLRACE_JAVA_OPTS and the memory that is free. NCCL will use another network"), line);
        assertTrue(outcome.endsWith("RESULT " + nccl_h.ncclSystemError() + "\n"), outcome.output());
    }

    @Test
    void aSettingThatForbidsTheTakeoverLeavesNcclsProxyInCharge() throws Exception {
        var outcome = host().with("NCCL_NET_SHARED_BUFFERS", "1").run(HostProgram.library());
        String line = outcome.logLine(WARN);
        assertTrue(line.startsWith("NET/Millrace: the takeover is not possible with NCCL_NET_SHARED_BUFFERS=1 ("),
                line);
        assertEquals(1, outcome.count("NCCL's proxy moves the data"), outcome.output());
        assertTrue(outcome.endsWith("RESULT 0\n"), outcome.output());
    }

    @Test
    void aTakeoverThatTheUserInsistsOnFailsWhereItIsForbidden() throws Exception {
        assertRefused(host().with("NCCL_GDRCOPY_ENABLE", "1").with("MILLRACE_TAKEOVER", "1"), HostProgram.library(),
                nccl_h.ncclInvalidUsage(),
                "init: the takeover is not possible with NCCL_GDRCOPY_ENABLE=1 (with GDRCopy the counters lie in"
                        + " the GPU's memory; unset it, or set it to 0), " + "and"
                        + " MILLRACE_TAKEOVER=1 requires it");
    }
}
