package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The compilers of the JVM that the plugin starts must not hold up the threads that move data. */
@Tag("slow")
class CompilerThreadsTest {

    private static final String OPTIMIZING = "C2 Comp";

    /** Policy SCHED_OTHER, as all threads of the test. */
    private static final String AS_ALL = "THREAD 0 0";

    /**
     * Policy SCHED_BATCH and the greatest niceness. It must not be SCHED_IDLE: such a thread gets no core beside others
     * that poll, not even to end when its process is killed.
     */
    private static final String BEHIND_ALL = "THREAD 3 19";

    /** Scheduling policy, niceness and name of each. */
    private static List<String> threads(String cores, String options) throws Exception {
        return threads(cores, HostProgram.compile("threads_host").with("MILLRACE_JAVA_OPTS", options));
    }

    private static List<String> threads(String cores, HostProgram host) throws Exception {
        var outcome = host.run(HostProgram.library(), cores);
        assertEquals(0, outcome.exit(), outcome.output());
        List<String> threads = outcome.output().lines().filter(line -> line.startsWith("THREAD ")).toList();
        assertEquals(1, threads.stream().filter(thread -> thread.contains("millrace-proxy")).limit(1).count(),
                outcome.output());
        return threads.stream().filter(thread -> thread.contains(OPTIMIZING)).toList();
    }

    @Test
    void onOneCoreTheOptimizingCompilerDoesNotRun() throws Exception {
        assertEquals(List.of(), threads("one", ""));
    }

    @Test
    void itRunsWhereTheUserWantsIt() throws Exception {
        assertNotEquals(List.of(), threads("one", "-XX:TieredStopAtLevel=4"));
    }

    @Test
    void itRunsBehindAllOthers() throws Exception {
        List<String> compilers = threads("one", "-XX:TieredStopAtLevel=4 -XX:-UseDynamicNumberOfCompilerThreads");
        assertNotEquals(List.of(), compilers);
        compilers.forEach(compiler -> assertEquals(BEHIND_ALL, compiler.split(" " + OPTIMIZING)[0]));
    }

    /** Encryption waits for it. */
    @Test
    void underTlsItRunsBesideThreadsThatPoll() throws Exception {
        List<String> compilers = threads("one",
                HostProgram.compile("threads_host")
                        .with("MILLRACE_NET", "socket")
                        .with("MILLRACE_TLS", "1")
                        .with("MILLRACE_SECRET", "of the job")
                        .withEveryCompiler());
        assertNotEquals(List.of(), compilers);
        compilers.forEach(compiler -> assertEquals(AS_ALL, compiler.split(" " + OPTIMIZING)[0]));
    }

    @Test
    void onManyCoresItRunsThere() throws Exception {
        assumeTrue(Runtime.getRuntime().availableProcessors() >= 4, "4 cores");
        List<String> compilers = threads("all", "");
        assertNotEquals(List.of(), compilers);
        compilers.forEach(compiler -> assertEquals(BEHIND_ALL, compiler.split(" " + OPTIMIZING)[0]));
    }
}
