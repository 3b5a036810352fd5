package org.millrace.cli.perf;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.Route;
import org.millrace.net.link.Fault;

/**
 * Combines the measurements of the ranks. Every rank reports its cases in the order of the plan, so lines are completed
 * in the order of the plan.
 */
public final class PerfResults {

    /** A complete line; the route is empty if the device does not report it. */
    record Row(PerfPlan.Case line, PerfEvent.CaseResult outOfPlace, PerfEvent.CaseResult inPlace,
            Optional<Route> route) {
    }

    private final PerfPlan plan;
    private final PerfEvent.@Nullable Joined[] joined;
    private final int[] done;
    private final PerfEvent.@Nullable CaseResult[] outOfPlace;
    private final PerfEvent.@Nullable CaseResult[] inPlace;
    private final List<List<Route>> routes = new ArrayList<>();
    /** Run times of kernels as text, by rank, for each case. */
    private final List<Map<Integer, String>> profiles = new ArrayList<>();
    private final Set<String> faults = new HashSet<>();
    private final List<Row> rows = new ArrayList<>();

    public PerfResults(PerfPlan plan) {
        this.plan = plan;
        joined = new PerfEvent.Joined[plan.ranks()];
        done = new int[plan.ranks()];
        outOfPlace = new PerfEvent.CaseResult[plan.cases().size()];
        inPlace = new PerfEvent.CaseResult[plan.cases().size()];
        plan.cases().forEach(_ -> routes.add(new ArrayList<>()));
        plan.cases().forEach(_ -> profiles.add(new TreeMap<>()));
    }

    public void add(PerfEvent event) {
        switch (event) {
            case PerfEvent.Joined each -> joined[each.rank()] = each;
            case PerfEvent.Routed each -> routes.get(each.index()).add(each.route());
            case PerfEvent.Profiled each -> profiles.get(each.index()).put(each.rank(), each.text());
            case PerfEvent.FaultHappened each -> faults.add(each.fault());
            case PerfEvent.Measured each -> {
                int index = each.index();
                outOfPlace[index] = merge(outOfPlace[index], each.outOfPlace());
                inPlace[index] = merge(inPlace[index], each.inPlace());
                done[each.rank()] = index + 1;
            }
        }
    }

    /** Returns the ranks' texts about the kernels of a line; empty if the user has not asked for them. */
    Collection<String> profile(Row row) {
        return profiles.get(row.line().index()).values();
    }

    boolean happened(Fault fault) {
        return faults.contains(fault.text());
    }

    private static PerfEvent.CaseResult merge(PerfEvent.@Nullable CaseResult known, PerfEvent.CaseResult added) {
        return known == null ? added : known.with(added);
    }

    /** Returns the lines of the table that were completed since the last call. */
    public List<Row> takeComplete() {
        int begin = rows.size();
        int complete = plan.cases().size();
        for (int cases : done) {
            complete = Math.min(complete, cases);
        }
        for (int index = begin; index < complete; index++) {
            rows.add(new Row(plan.cases().get(index), outOfPlace[index], inPlace[index], route(routes.get(index))));
        }
        return rows.subList(begin, rows.size());
    }

    /**
     * Combines the routes that the ranks have reported for one operation, because each rank knows only its own
     * transports. Values that differ between ranks are joined with a plus sign. Empty if no rank has reported a route.
     */
    private static Optional<Route> route(List<Route> told) {
        if (told.isEmpty()) {
            return Optional.empty();
        }
        List<String> transports =
                told.stream().flatMap(route -> route.transports().stream()).sorted().distinct().toList();
        return Optional.of(new Route(each(told, Route::algorithm), each(told, Route::protocol), each(told, Route::mode),
                transports, List.of()));
    }

    private static String each(List<Route> told, Function<Route, String> part) {
        return told.stream().map(part).sorted().distinct().collect(Collectors.joining("+"));
    }

    boolean allJoined() {
        for (PerfEvent.Joined event : joined) {
            if (event == null) {
                return false;
            }
        }
        return true;
    }

    /** Returns the process, host and device of a rank; null if the rank has not joined. */
    PerfEvent.@Nullable Joined joined(int rank) {
        return joined[rank];
    }

    List<Row> rows() {
        return rows;
    }

    /** Returns a text with the last known activity of every rank. */
    String whereabouts() {
        return IntStream.range(0, plan.ranks()).mapToObj(this::whereabouts).collect(Collectors.joining(", "));
    }

    private String whereabouts(int rank) {
        if (joined[rank] == null) {
            return "rank " + rank + " has not joined";
        }
        return "rank " + rank
                + (done[rank] == plan.cases().size() ? " is leaving" : " is at " + plan.cases().get(done[rank]));
    }

    /** Returns the number of wrong elements of all ranks and lines. */
    public long wrong() {
        return rows.stream()
                .mapToLong(row -> Math.max(0, row.outOfPlace().wrong()) + Math.max(0, row.inPlace().wrong()))
                .sum();
    }

    /** Returns the size of the operand divided by the time, in GB/s. */
    static double algorithmBandwidth(PerfPlan.Case line, PerfEvent.CaseResult sample) {
        return sample.nanos() == 0 ? 0 : line.bytes() / sample.nanos();
    }

    /** Returns the bandwidth of the busiest link in GB/s. This bandwidth does not depend on the number of ranks. */
    double busBandwidth(PerfPlan.Case line, PerfEvent.CaseResult sample) {
        return algorithmBandwidth(line, sample) * busFactor();
    }

    /**
     * Returns the number of bytes that the busiest link carries for each byte of the operand, as in PERFORMANCE.md of
     * nccl-tests.
     */
    private double busFactor() {
        int ranks = plan.ranks();
        return switch (plan.collective()) {
            case ALL_REDUCE -> 2.0 * (ranks - 1) / ranks; // a link of a ring carries all parts but one in two phases
            case ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, GATHER, SCATTER -> (ranks - 1.0) / ranks;
            case BROADCAST, REDUCE, SEND_RECEIVE -> 1;
        };
    }

    /** Returns the average bus bandwidth of all lines, in place and out of place, in GB/s; 0 without lines. */
    double averageBusBandwidth() {
        return rows.stream()
                .flatMapToDouble(row -> Stream.of(row.outOfPlace(), row.inPlace())
                        .filter(PerfEvent.CaseResult::isMeasured)
                        .mapToDouble(sample -> busBandwidth(row.line(), sample)))
                .average()
                .orElse(0);
    }
}
