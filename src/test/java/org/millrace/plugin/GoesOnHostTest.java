package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.trace.Hang;
import org.millrace.trace.TraceReader;
import org.millrace.trace.Verdict;

/** A process that learns of lost peers by ncclCommGetAsyncError, and continues in new communicators. */
@Tag("slow")
class GoesOnHostTest {

    private static final long DEADLINE_NANOS = TimeUnit.MINUTES.toNanos(4);
    private static final long LOOK_MILLIS = 20;
    private static final Duration QUIET = Duration.ofMillis(1);
    private static final String LIBNCCL = "libnccl.so.2";
    /**
     * Number of lost peers after which open resources are counted. A second count after more losses is compared with
     * the first count.
     */
    private static final int SETTLED = 5;
    /**
     * Permitted growth of the process's memory, in KiB: the memory of one communicator, and variation of the JVM's
     * memory.
     */
    private static final int MAX_KIBIBYTES = 16 << 10;

    @TempDir
    private Path directory;

    /**
     * With the binding "lazy", the dynamic linker fills import tables when a function is first called. With the binding
     * "now", it fills the tables before the program begins, and then write-protects them.
     */
    private static HostProgram host(String network, String... binding) throws Exception {
        Path stub = HostProgram.compileStub("communicators.c", LIBNCCL);
        List<String> options =
                new ArrayList<>(List.of("-DNET_VERSION=11", "-Wl,--no-as-needed", "-L" + stub, "-l:" + LIBNCCL));
        options.addAll(List.of(binding));
        return HostProgram.compile("goes_on_host", options.toArray(String[]::new))
                .withNetwork(network)
                .with("LD_LIBRARY_PATH", stub.toString())
                .with("MILLRACE_STALL_REPORT", "0s")
                .with("MILLRACE_LOSS_GRACE", "300ms");
    }

    /**
     * Runs the program until it continues in a new communicator, checks that no rank counts as stalled, and lets it
     * end.
     */
    private HostProgram.Outcome goOn(HostProgram host, String way, int losses, Object... asker) throws Exception {
        Path log = directory.resolve("log");
        List<Object> arguments = new ArrayList<>(List.of(HostProgram.library(), way, losses));
        arguments.addAll(List.of(asker));
        Process process = host.start(log, arguments.toArray());
        try {
            long begin = System.nanoTime();
            while (!Files.readString(log).contains("rank 0 went on")) {
                assertTrue(!process.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS)
                        && System.nanoTime() - begin < DEADLINE_NANOS, Files.readString(log));
            }
            MatchResult pid =
                    Pattern.compile("rank 0 is pid (\\d+)").matcher(Files.readString(log)).results().findFirst().get();
            // the idle aborted communicator must not be reported as stalled
            assertEquals(List.of(), verdictsOn(Long.parseLong(pid.group(1))), Files.readString(log));
            process.getOutputStream().close();
            return new HostProgram.Outcome(process.waitFor(), Files.readString(log));
        } finally {
            process.destroyForcibly().waitFor();
        }
    }

    private static List<String> verdictsOn(long pid) throws Exception {
        return Hang.verdicts(() -> TraceReader.readAll(Path.of("/dev/shm"), (file, problem) -> {}), QUIET)
                .stream()
                // An earlier process may have had the same number, so verdicts on ended processes are ignored.
                .filter(verdict -> verdict.cause() != Verdict.Cause.ENDED && verdict.concerns(List.of(pid)))
                .map(Verdict::sentence)
                .toList();
    }

    @ParameterizedTest
    @CsvSource({"shm, 8, lazy", "socket, 8, now"})
    void aProgramIsToldAbortsAndJoinsAnewAndNothingIsLeft(String network, int losses, String binding) throws Exception {
        toldAbortsAndJoinsAnew(network, losses, binding);
    }

    @Test
    @Tag("nightly")
    void overUcxToo() throws Exception {
        toldAbortsAndJoinsAnew("ucx", 12, "lazy");
    }

    private void toldAbortsAndJoinsAnew(String network, int losses, String binding) throws Exception {
        var outcome =
                goOn(host(network, "-Wl,-z," + binding, binding.equals("now") ? "-fno-plt" : "-fplt"), "abort", losses);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(losses, outcome.count("told after "), outcome.output());
        assertEquals(0, outcome.count("ends with status"), outcome.output());
        MatchResult early = open(outcome, SETTLED);
        MatchResult late = open(outcome, losses);
        // One UCX worker may still be open now, because its lost peer has not received all sent data.
        assertGrowth(early, late, 1, network.startsWith("ucx") ? 12 : 0, outcome);
        assertGrowth(early, late, 2, 3, outcome); // the JVM starts and ends compiler threads
        // kept threads have stacks, which are mappings
        assertGrowth(early, late, 3, 20 + 4 * (losses - SETTLED), outcome);
        assertGrowth(early, late, 4, MAX_KIBIBYTES, outcome);
    }

    /**
     * An executable such as Python's is linked at fixed addresses. The address of an imported function, even as seen by
     * libraries, is then the address of a jump within the executable.
     */
    @Test
    void aProgramAtFixedAddressesIsToldToo() throws Exception {
        var outcome = goOn(host("shm", "-fno-pie", "-no-pie"), "abort", 2);
        assertEquals(2, outcome.count("told after "), outcome.output());
    }

    @Test
    void whatIsLoadedLaterIsToldToo() throws Exception {
        Path asker = HostProgram.compileStub("asker.c", "libasker.so").resolve("libasker.so");
        var outcome = goOn(host("shm"), "abort", 2, asker);
        assertEquals(2, outcome.count("told after "), outcome.output());
    }

    private static HostProgram.Outcome run(HostProgram host, Object... arguments) throws Exception {
        List<Object> all = new ArrayList<>(List.of(HostProgram.library()));
        all.addAll(List.of(arguments));
        return host.run(all.toArray());
    }

    /**
     * The plugin does not end a program that has received the error, however late the program reacts. NCCL's own proxy
     * does not end such a program either.
     */
    @Test
    void aProgramThatWasToldIsNotEnded() throws Exception {
        var outcome = run(host("shm"), "stay", 1);
        assertEquals(1, outcome.count("told after "), outcome.output());
        assertEquals(1, outcome.count("rank 0 ended with status 0"), outcome.output());
    }

    @Test
    void aProgramThatShrinksIsNotEnded() throws Exception {
        var outcome = goOn(host("shm").with("MILLRACE_LOSS_GRACE", "2s"), "shrink", 1);
        assertEquals(1, outcome.count("lost the peer pid"), outcome.output());
        assertEquals(1, outcome.count("rank 0 ended with status 0"), outcome.output());
    }

    @Test
    void whoIsNotToBeToldIsEnded() throws Exception {
        var outcome = run(host("shm").with("MILLRACE_ASYNC_ERROR", "0"), "silent", 1);
        assertEquals(1, outcome.count("rank 0 ended with status 75"), outcome.output());
        assertTrue(outcome.count("ncclCommGetAsyncError does not report a lost peer: MILLRACE_ASYNC_ERROR") > 0,
                outcome.output());
    }

    /**
     * The program calls the function by a pointer from dlsym. The plugin can redirect import tables, but not a pointer
     * that the program holds.
     */
    @Test
    void whoHasLookedTheFunctionUpIsNotToldAndEnded() throws Exception {
        HostProgram host = host("shm");
        var outcome = run(host, "silent", 1, HostProgram.compileStub("communicators.c", LIBNCCL).resolve(LIBNCCL));
        assertEquals(1, outcome.count("rank 0 ended with status 75"), outcome.output());
    }

    private static void assertGrowth(MatchResult early, MatchResult late, int group, int most,
            HostProgram.Outcome outcome) {
        int growth = Integer.parseInt(late.group(group)) - Integer.parseInt(early.group(group));
        assertTrue(growth <= most, () -> early.group() + "\n" + late.group() + "\n" + outcome.output());
    }

    private static MatchResult open(HostProgram.Outcome outcome, int losses) {
        return Pattern.compile("after " + losses + ": (\\d+) fds, (\\d+) threads, (\\d+) mappings, (\\d+) KiB")
                .matcher(outcome.output())
                .results()
                .findFirst()
                .orElseThrow(() -> new AssertionError(outcome.output()));
    }
}
