package org.millrace.trace;

import java.time.Duration;
import java.util.BitSet;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TracedRank.ProcessState;
import org.millrace.trace.Verdict.Cause;

/**
 * Ranks that join the same group. A rank that rank 0 has admitted knows the missing ranks. A rank that rank 0 has not
 * admitted knows the address that it tries, and the last failure.
 */
final class JoiningGroup {

    private JoiningGroup() {}

    /**
     * Returns a verdict for each incomplete group if the group's latest join was at least {@code quiet} ago. Leaves out
     * a group if another verdict about one of the group's processes explains the wait. Such a verdict names a
     * connection that is not made, a stopped process or a dead process.
     */
    static List<Verdict> verdicts(List<TracedProcess> processes, Function<TracedProcess, ProcessState> states,
            Duration quiet, List<Verdict> told) {
        Map<List<Object>, Map<TracedJoin, TracedRank>> groups = new LinkedHashMap<>();
        for (TracedProcess process : processes) {
            for (TracedJoin join : process.joins()) {
                if (join.state() == TracedState.OPEN && join.size() != 0) {
                    groups.computeIfAbsent(List.of(join.where(), join.size()),
                            _ -> new TreeMap<>(
                                    Comparator.comparingInt(TracedJoin::rank).thenComparingLong(TracedJoin::since)))
                            .put(join, new TracedRank(process, states.apply(process), 0, join.rank(), null));
                }
            }
        }
        groups.values().forEach(JoiningGroup::removeEarlier);
        return groups.values()
                .stream()
                .filter(group -> !group.isEmpty())
                .map(JoiningGroup::verdict)
                .filter(verdict -> verdict != null && verdict.still().compareTo(quiet) >= 0
                        && told.stream().noneMatch(each -> explains(each.cause()) && each.concerns(verdict.members())))
                .toList();
    }

    /** Returns whether a verdict with this cause also explains why a group of the same processes is incomplete. */
    private static boolean explains(Cause cause) {
        return cause == Cause.NOT_CONNECTED || cause == Cause.STOPPED || cause == Cause.GONE;
    }

    /**
     * Removes dead ranks that have been replaced, or that died before the living ranks began to join. A group without a
     * living rank becomes empty.
     */
    private static void removeEarlier(Map<TracedJoin, TracedRank> group) {
        List<TracedRank> living = group.values().stream().filter(each -> each.state() != ProcessState.DEAD).toList();
        long begun = living.stream().mapToLong(each -> each.process().epochNanos()).min().orElse(Long.MAX_VALUE);
        group.values()
                .removeIf(each -> each.state() == ProcessState.DEAD && (each.process().heartbeat() < begun
                        || living.stream().anyMatch(other -> other.rank() == each.rank())));
    }

    private static boolean runs(TracedRank rank) {
        return rank.state() != ProcessState.DEAD && !rank.state().isStopped();
    }

    /**
     * Returns the verdict that the traces of a group's ranks show; null if the group has just become complete. Ignores
     * the lists of missing ranks in the traces of stopped and dead ranks, because these lists are out of date.
     */
    private static @Nullable Verdict verdict(Map<TracedJoin, TracedRank> group) {
        TracedJoin first = group.keySet().iterator().next();
        BitSet missing = new BitSet();
        missing.set(0, first.size());
        group.keySet()
                .stream()
                .filter(each -> runs(group.get(each)) && !each.missing().get(each.rank()))
                .forEach(each -> missing.and(each.missing()));
        if (missing.isEmpty()) {
            return null;
        }
        BitSet joined = (BitSet) missing.clone();
        joined.flip(0, first.size());
        TracedJoin outside = group.keySet()
                .stream()
                .filter(each -> missing.get(each.rank()) || !runs(group.get(each)))
                // The value false comes before true, so stopped and dead ranks come first.
                .min(Comparator.comparing(each -> runs(group.get(each))))
                .orElse(null);
        TracedRank culprit = outside == null ? null : group.get(outside);
        String activity = outside == null ? ""
                : culprit.words() + " "
                        + (outside.activity().isEmpty() ? "has not completed its join" : outside.activity());
        String sentence = joined.isEmpty() ? activity + " (group at " + first.where() + ")"
                : ranks(missing) + (missing.cardinality() == 1 ? " has" : " have") + " not joined: " + ranks(joined)
                        + (joined.cardinality() == 1 ? " waits at " : " wait at ") + first.where()
                        + (outside == null ? "" : "; " + activity);
        List<TracedRank> living = group.values().stream().filter(each -> each.state() != ProcessState.DEAD).toList();
        String claims = living.stream()
                .filter(one -> living.stream()
                        .anyMatch(two -> two.rank() == one.rank() && two.process() != one.process()))
                .map(TracedRank::wordsWithoutState)
                .collect(Collectors.joining(", "));
        // A process of another host has another clock. For such a process, the last heartbeat replaces the time of the
        // reading.
        TracedRank of = living.getFirst();
        long still = (of.isHere() ? of.process().read() : of.process().heartbeat())
                - group.keySet().stream().mapToLong(TracedJoin::since).max().orElseThrow();
        boolean stopped = culprit != null && culprit.state().isStopped();
        return new Verdict(stopped ? Cause.STOPPED : Cause.NOT_JOINED, 0, culprit,
                joined.isEmpty() || of == culprit ? null : of, null, null,
                (stopped ? sentence : Verdict.capital(sentence))
                        + (claims.isEmpty() ? "" : "; processes with the same rank: " + claims),
                null, first.withMissing(missing), first.since(), Duration.ofNanos(still),
                group.values().stream().map(each -> each.process().identity().pid()).collect(Collectors.toSet()));
    }

    /**
     * Returns a verdict for each rank that has tried to make a connection for at least {@code quiet}, as in a hang of
     * {@code ncclCommInitRank}. The verdict is about the rank's oldest incomplete connection. Leaves out communicators
     * with other verdicts.
     */
    static List<Verdict> connections(List<TracedProcess> processes, Function<TracedProcess, ProcessState> states,
            Duration quiet, List<Verdict> told) {
        Map<List<Object>, Verdict> oldest = new LinkedHashMap<>();
        processes.stream()
                .filter(TracedProcess::alive)
                .flatMap(process -> connecting(process).sorted(Comparator.comparingLong(TracedJoin::since))
                        .map(each -> connection(process, states.apply(process), each)))
                .filter(verdict -> verdict.still().compareTo(quiet) >= 0 && told.stream()
                        .noneMatch(other -> other.cause() != Cause.ENDED && other.hash() == verdict.hash()
                                && (other.hash() != 0 || other.concerns(verdict.members()))))
                .forEach(verdict -> oldest.putIfAbsent(List.of(verdict.members(), verdict.hash(), verdict.rank()),
                        verdict));
        return List.copyOf(oldest.values());
    }

    /** Returns the connections that a process is making. */
    static Stream<TracedJoin> connecting(TracedProcess process) {
        return process.joins()
                .stream()
                .filter(each -> each.state() == TracedState.OPEN && each.size() == 0
                        && each.isPolled(process.heartbeat()));
    }

    private static Verdict connection(TracedProcess process, ProcessState state, TracedJoin join) {
        int number = join.rank() >= 0 ? join.rank()
                : process.communicators()
                        .stream()
                        .filter(each -> each.hash() == join.hash())
                        .mapToInt(TracedCommunicator::rank)
                        .findFirst()
                        .orElse(process.rank());
        TracedRank rank = new TracedRank(process, state, join.hash(), number, null);
        return new Verdict(Cause.NOT_CONNECTED, join.hash(), rank, null, null, null,
                Verdict.capital(rank.words()) + " has not connected: " + join.activity(), null, join, join.since(),
                Duration.ofNanos((rank.isHere() ? process.read() : process.heartbeat()) - join.since()),
                Set.of(process.identity().pid()));
    }

    /** Returns "ranks 0 to 2, 5". */
    private static String ranks(BitSet set) {
        StringJoiner text = new StringJoiner(", ", set.cardinality() == 1 ? "rank " : "ranks ", "");
        for (int from = set.nextSetBit(0); from >= 0; from = set.nextSetBit(set.nextClearBit(from))) {
            int last = set.nextClearBit(from) - 1;
            text.add(from == last ? "" + from : from + " to " + last);
        }
        return text.toString();
    }
}
