package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.plugin.HostProgram.Outcome;

/**
 * For each kind of event, the number of ended events equals the number of begun events. A host that behaves as libnccl
 * does prints its own counts. The test compares the host's counts with the counts of the profiler plugin.
 */
@Tag("slow")
class ProfilerEventsTest {

    private static final Pattern TOLD =
            Pattern.compile("EVENTS (.{12}) (.{20}) told +(\\d+) taken +(\\d+) ended +(\\d+)");
    private static final Pattern COUNTED = Pattern.compile("(\\d+) ([a-z ]+), of which (\\d+) have ended");
    private static final Pattern AFTER_A_PAUSE = Pattern.compile("operations after a pause: (\\d+)");
    /** Number of pauses that the host makes between operations. */
    private static final int PAUSES = 8;
    private static final int OPERATIONS = 80;
    private static final Set<String> TAKEN = Set.of("collective", "send or receive", "block of a kernel");

    /** Counts of events of one kind: events that the plugin accepted, and events that ended. */
    private record Count(long taken, long ended) {
    }

    /**
     * Returns the host's counts for each kind of event, for the communicators with a given name. Omits kinds that the
     * plugin does not accept.
     */
    private static List<Count> told(Outcome outcome, String who) {
        return TOLD.matcher(outcome.output())
                .results()
                .filter(line -> line.group(1).strip().equals(who) && TAKEN.contains(line.group(2).strip()))
                .map(line -> new Count(Long.parseLong(line.group(4)), Long.parseLong(line.group(5))))
                .toList();
    }

    /**
     * Returns one list for each ended communicator. The list contains the plugin's counts, one for each kind of event,
     * in the order of the kinds.
     */
    private static List<List<Count>> counted(Outcome outcome, int kinds) {
        return outcome.output()
                .lines()
                .filter(line -> line.contains("profiler: "))
                .map(line -> COUNTED.matcher(line)
                        .results()
                        .limit(kinds)
                        .map(each -> new Count(Long.parseLong(each.group(1)), Long.parseLong(each.group(3))))
                        .toList())
                .toList();
    }

    private static void assertAllEnded(Outcome outcome, List<Count> counts, int kinds) {
        assertEquals(kinds, counts.size(), outcome.output());
        for (Count each : counts) {
            assertTrue(each.taken > 0 && each.taken == each.ended, outcome.output());
        }
    }

    /**
     * Runs without kernel events and with them. NCCL reports some events after their communicator was aborted. The
     * plugin must not count late events for a later communicator at the same address.
     */
    @ParameterizedTest
    @ValueSource(ints = {4, 5, 6, 7})
    void asManyEndAsBeginExceptWhereACommunicatorIsAborted(int version) throws Exception {
        long seed = 0x5eed + version;
        Outcome outcome = HostProgram.compile("profiler_host", "-DNET_VERSION=11", "-DPROFILER_VERSION=" + version)
                .run(HostProgram.library(), OPERATIONS, seed);
        outcome.output().lines().filter(line -> line.startsWith("EVENTS ")).forEach(System.out::println);
        assertEquals(0, outcome.exit(), () -> "seed " + seed + "\n" + outcome.output());
        assertTrue(outcome.endsWith("OK ncclProfiler_v" + version + "\n"), outcome.output());
        List<List<Count>> plain = List.of(told(outcome, "plain 0"), told(outcome, "plain 1"));
        List<Count> aborted = told(outcome, "aborted");
        List<List<Count>> withKernels = List.of(told(outcome, "kernels 0"), told(outcome, "kernels 1"));
        plain.forEach(each -> assertAllEnded(outcome, each, 2));
        withKernels.forEach(each -> assertAllEnded(outcome, each, 3));
        assertTrue(aborted.getLast().taken > aborted.getLast().ended, outcome.output());
        assertEquals(Set.copyOf(plain), Set.copyOf(counted(outcome, 2).subList(0, 2)), outcome.output());
        assertEquals(aborted, counted(outcome, 3).get(2), outcome.output());
        assertEquals(Set.copyOf(withKernels), Set.copyOf(counted(outcome, 3).subList(3, 5)), outcome.output());
        Set<String> kinds =
                TOLD.matcher(outcome.output()).results().map(line -> line.group(2).strip()).collect(Collectors.toSet());
        assertEquals((version == 4 ? 1 : 4) + 3, kinds.size(), outcome.output());
        List<Integer> pauses =
                AFTER_A_PAUSE.matcher(outcome.output()).results().map(each -> Integer.valueOf(each.group(1))).toList();
        assertEquals(5, pauses.size(), outcome.output());
        assertTrue(Collections.min(pauses) >= PAUSES, outcome.output());
    }

    /**
     * The plugin reports only events of messages. Their parents are events of steps and operations, which the host
     * reports itself. The plugin can store 32 requests with events at a time. A close of a connection frees the places
     * of its unfinished messages.
     */
    @ParameterizedTest
    @ValueSource(ints = {10, 11, 12})
    void messagesOfConnectionsThatWereAbortedKeepNoRoom(int version) throws Exception {
        Outcome outcome = HostProgram.compile("net_host", "-DNET_VERSION=" + version)
                .with("MILLRACE_TAKEOVER", "0")
                .run(HostProgram.compileShim("libnccl-net-few.so", "-DMILLRACE_EVENT_PLACE_BITS=5").toAbsolutePath(),
                        24, 0x5eed + version, "abort");
        outcome.output().lines().filter(line -> line.startsWith("EVENTS ")).forEach(System.out::println);
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.endsWith("OK ncclNetPlugin_v" + version + "\n"), outcome.output());
    }
}
