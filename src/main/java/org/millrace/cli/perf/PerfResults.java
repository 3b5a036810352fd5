package org.millrace.cli.perf;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.millrace.Route;
import org.millrace.cli.check.PerfCase;
import org.millrace.cli.launch.CaseResult;
import org.millrace.cli.launch.RankEvent;
import org.millrace.net.fault.Fault;

/**
 * Puts together what the ranks measured. Every rank reports its cases in order, so that lines become complete in order
 * too.
 */
final class PerfResults {

    /**
     * A complete line.
     *
     * @param line       what was measured
     * @param outOfPlace all ranks together
     * @param inPlace    all ranks together
     * @param route      how its operations travelled; empty if the device does not tell
     */
    record Row(PerfCase line, CaseResult outOfPlace, CaseResult inPlace, Optional<Route> route) {
    }

    private final PerfPlan plan;
    private final RankEvent.Joined[] joined;
    private final int[] done;
    private final CaseResult[] outOfPlace;
    private final CaseResult[] inPlace;
    private final List<RankRoutes> routes = new ArrayList<>();
    private final Set<String> befallen = new HashSet<>();
    private final List<Row> rows = new ArrayList<>();

    PerfResults(PerfPlan plan) {
        this.plan = plan;
        joined = new RankEvent.Joined[plan.ranks()];
        done = new int[plan.ranks()];
        outOfPlace = new CaseResult[plan.cases().size()];
        inPlace = new CaseResult[plan.cases().size()];
        plan.cases().forEach(_ -> routes.add(new RankRoutes()));
    }

    void add(RankEvent.Joined event) {
        joined[event.rank()] = event;
    }

    void add(RankEvent.Routed event) {
        routes.get(event.index()).add(event.route());
    }

    void add(RankEvent.Befallen event) {
        befallen.add(event.fault());
    }

    /** Whether a fault has happened at any rank. */
    boolean happened(Fault fault) {
        return befallen.contains(fault.text());
    }

    void add(RankEvent.Measured event) {
        int index = event.index();
        outOfPlace[index] = merge(outOfPlace[index], event.outOfPlace());
        inPlace[index] = merge(inPlace[index], event.inPlace());
        done[event.rank()] = index + 1;
    }

    private static CaseResult merge(CaseResult known, CaseResult added) {
        return known == null ? added : known.with(added);
    }

    /** Lines that have become complete since the last call. */
    List<Row> takeComplete() {
        int begin = rows.size();
        int complete = plan.cases().size();
        for (int cases : done) {
            complete = Math.min(complete, cases);
        }
        for (int index = begin; index < complete; index++) {
            rows.add(new Row(plan.cases().get(index), outOfPlace[index], inPlace[index], routes.get(index).together()));
        }
        return rows.subList(begin, rows.size());
    }

    boolean allJoined() {
        for (RankEvent.Joined event : joined) {
            if (event == null) {
                return false;
            }
        }
        return true;
    }

    /** Who and where the ranks are; null for one that has not joined. */
    RankEvent.Joined joined(int rank) {
        return joined[rank];
    }

    List<Row> rows() {
        return rows;
    }

    /** What a rank was last known to do. */
    String whereabouts(int rank) {
        if (joined[rank] == null) {
            return "rank " + rank + " has not joined";
        }
        return "rank " + rank
                + (done[rank] == plan.cases().size() ? " is leaving" : " is at " + plan.cases().get(done[rank]));
    }

    /** Wrong elements of all ranks and lines. */
    long wrong() {
        return rows.stream()
                .mapToLong(row -> Math.max(0, row.outOfPlace().wrong()) + Math.max(0, row.inPlace().wrong()))
                .sum();
    }

    /** GB/s: operand over time. */
    static double algorithmBandwidth(PerfCase line, CaseResult sample) {
        return sample.nanos() == 0 ? 0 : line.bytes() / sample.nanos();
    }

    /** GB/s of the busiest link, which does not depend on the number of ranks. */
    double busBandwidth(PerfCase line, CaseResult sample) {
        return algorithmBandwidth(line, sample) * plan.collective().busFactor(plan.ranks());
    }

    /** Over all lines, in place and not; 0 if there is none. */
    double averageBusBandwidth() {
        return rows.stream()
                .flatMapToDouble(row -> Stream.of(row.outOfPlace(), row.inPlace())
                        .filter(CaseResult::isMeasured)
                        .mapToDouble(sample -> busBandwidth(row.line(), sample)))
                .average()
                .orElse(0);
    }
}
