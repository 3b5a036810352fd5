package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The compilers of the plugin's JVM must not delay the threads that move data. */
@Tag("slow")
class CompilerThreadsTest {

    private static final String OPTIMIZING = "C2 Comp";

    /** Policy SCHED_OTHER, which all threads of the test have. */
    private static final String AS_ALL = "0 0";

    /**
     * Policy SCHED_BATCH and the greatest niceness. On few cores the policy must not be SCHED_IDLE. A thread with that
     * policy gets no core beside polling threads, not even to end when its process is killed.
     */
    private static final String BEHIND_ALL = "3 19";

    private static final String ON_IDLE_CORES = "5 0";

    /** The host's report of its threads: scheduling policy, niceness and name of each. */
    private record Threads(String output) {

        static Threads of(String cores, HostProgram host) throws Exception {
            var outcome = host.run(HostProgram.library(), cores);
            assertEquals(0, outcome.exit(), outcome.output());
            Threads threads = new Threads(outcome.output());
            assertNotEquals(List.of(), threads.priorities("millrace-proxy"), outcome.output());
            return threads;
        }

        static Threads of(String cores, String options) throws Exception {
            return of(cores, host().with("MILLRACE_JAVA_OPTS", options));
        }

        static HostProgram host() throws Exception {
            return HostProgram.compile("threads_host");
        }

        /** Returns the priorities of all threads with names that begin with the given text. */
        List<String> priorities(String name) {
            return output.lines()
                    .filter(line -> line.startsWith("THREAD ") && line.contains(" " + name))
                    .map(line -> line.substring("THREAD ".length(), line.indexOf(" " + name)))
                    .distinct()
                    .toList();
        }
    }

    @Test
    void onOneCoreTheOptimizingCompilerDoesNotRun() throws Exception {
        assertEquals(List.of(), Threads.of("one", "").priorities(OPTIMIZING));
    }

    @Test
    void itRunsWhereTheUserWantsIt() throws Exception {
        assertNotEquals(List.of(), Threads.of("one", "-XX:TieredStopAtLevel=4").priorities(OPTIMIZING));
    }

    @Test
    void itRunsBehindAllOthers() throws Exception {
        Threads threads = Threads.of("one", "-XX:TieredStopAtLevel=4 -XX:-UseDynamicNumberOfCompilerThreads");
        assertEquals(List.of(BEHIND_ALL), threads.priorities(OPTIMIZING));
    }

    /** Under TLS the encryption is slow until it is compiled, so the compiler thread must get processor time. */
    @Test
    void underTlsItRunsBesideThreadsThatPoll() throws Exception {
        Threads threads = Threads.of("one",
                Threads.host()
                        .with("MILLRACE_NET", "socket")
                        .with("MILLRACE_TLS", "1")
                        .with("MILLRACE_SECRET", "of the job")
                        .withEveryCompiler());
        assertEquals(List.of(AS_ALL), threads.priorities(OPTIMIZING));
    }

    @Test
    void onManyCoresItRunsThere() throws Exception {
        assumeTrue(Runtime.getRuntime().availableProcessors() >= 4, "4 cores");
        assertEquals(List.of(ON_IDLE_CORES), Threads.of("all", "").priorities(OPTIMIZING));
    }
}
