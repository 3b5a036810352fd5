package org.millrace.plugin.profile;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.plugin.HostProgram;
import org.millrace.plugin.HostProgram.Outcome;

/**
 * Of each kind of event as many end as begin: by what a host that behaves as libnccl does has told, and by what the
 * profiler plugin has counted.
 */
@Tag("slow")
class ProfilerEventsTest {

    private static final Pattern TOLD =
            Pattern.compile("EVENTS (.{12}) (.{20}) told +(\\d+) taken +(\\d+) ended +(\\d+)");
    private static final Pattern COUNTED = Pattern.compile("(\\d+) ([a-z ]+), of which (\\d+) have ended");
    private static final Pattern AFTER_A_PAUSE = Pattern.compile("operations after a pause: (\\d+)");
    /** What the host makes. */
    private static final int PAUSES = 8;
    private static final Set<String> TAKEN = Set.of("collective", "send or receive", "block of a kernel");

    /** What is kept of events of one kind: how many were taken, and how many ended. */
    private record Count(long taken, long ended) {
    }

    private static Outcome run(int version, String events, String way) throws Exception {
        long seed = 0x5eed + version;
        Outcome outcome = HostProgram.compile("profiler_host", "-DNET_VERSION=11", "-DPROFILER_VERSION=" + version)
                .with("MILLRACE_PROFILER", events)
                .run(HostProgram.library(), 400, seed, way);
        outcome.output().lines().filter(line -> line.startsWith("EVENTS ")).forEach(System.out::println);
        assertEquals(0, outcome.exit(), () -> "seed " + seed + "\n" + outcome.output());
        assertTrue(outcome.endsWith("OK ncclProfiler_v" + version + "\n"), outcome.output());
        return outcome;
    }

    /** Of the communicators of a name, and by kind, what the host has told; null for a kind that is not taken. */
    private static List<Count> told(Outcome outcome, String who) {
        return TOLD.matcher(outcome.output())
                .results()
                .filter(line -> line.group(1).strip().equals(who) && TAKEN.contains(line.group(2).strip()))
                .map(line -> new Count(Long.parseLong(line.group(4)), Long.parseLong(line.group(5))))
                .toList();
    }

    /** What the plugin has counted, of each communicator that has ended, in the kinds' order. */
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

    private static Set<String> kinds(Outcome outcome) {
        Set<String> kinds = new TreeSet<>();
        TOLD.matcher(outcome.output()).results().forEach(line -> kinds.add(line.group(2).strip()));
        return kinds;
    }

    @ParameterizedTest
    @CsvSource({"4, 1", "5, 1", "6, 1", "7, 1", "4, kernels", "5, kernels", "6, kernels", "7, kernels"})
    void asManyEndAsBegin(int version, String events) throws Exception {
        Outcome outcome = run(version, events, "all");
        int kinds = events.equals("kernels") ? 3 : 2;
        List<Count> first = told(outcome, "rank 0");
        List<Count> second = told(outcome, "rank 1");
        assertEquals(kinds, first.size(), outcome.output());
        assertEquals(Set.of(first, second), Set.copyOf(counted(outcome, kinds)), outcome.output());
        for (Count each : List.of(first, second).stream().flatMap(List::stream).toList()) {
            assertTrue(each.taken > 0 && each.taken == each.ended, outcome.output());
        }
        assertEquals((version == 4 ? 1 : 4) + kinds, kinds(outcome).size(), outcome.output());
        List<Integer> pauses =
                AFTER_A_PAUSE.matcher(outcome.output()).results().map(each -> Integer.valueOf(each.group(1))).toList();
        assertEquals(2, pauses.size(), outcome.output());
        assertTrue(Collections.min(pauses) >= PAUSES, outcome.output());
    }

    /**
     * Below a profiler of somebody else's, of which the host tells that of steps and operations, and the network that
     * of messages. Room for 32 requests with events is there: what was under way as connections were closed takes none.
     */
    @ParameterizedTest
    @ValueSource(ints = {10, 11, 12})
    void messagesOfConnectionsThatWereAbortedKeepNoRoom(int version) throws Exception {
        Outcome outcome = HostProgram.compile("net_host", "-DNET_VERSION=" + version)
                .with("MILLRACE_TAKEOVER", "0")
                .run(HostProgram.compileShim("libnccl-net-few.so", "-DMILLRACE_EVENT_PLACE_BITS=5").toAbsolutePath(),
                        60, 0x5eed + version, "abort");
        outcome.output().lines().filter(line -> line.startsWith("EVENTS ")).forEach(System.out::println);
        assertEquals(0, outcome.exit(), outcome.output());
        assertTrue(outcome.endsWith("OK ncclNetPlugin_v" + version + "\n"), outcome.output());
    }

    /** What NCCL tells late of a communicator that has ended counts for nobody, though another has its place. */
    @ParameterizedTest
    @ValueSource(ints = {4, 5, 6, 7})
    void whatIsUnderWayWhereACommunicatorIsAbortedIsNobodyElses(int version) throws Exception {
        Outcome outcome = run(version, "kernels", "abort");
        List<List<Count>> counted = counted(outcome, 3);
        assertEquals(3, counted.size(), outcome.output());
        assertEquals(told(outcome, "aborted"), counted.getFirst(), outcome.output());
        Count blocks = counted.getFirst().getLast();
        assertTrue(blocks.taken > blocks.ended, outcome.output());
        for (Count each : counted.subList(1, 3).stream().flatMap(List::stream).toList()) {
            assertTrue(each.taken > 0 && each.taken == each.ended, outcome.output());
        }
    }
}
