package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.Route;

class PerfResultsTest {

    private final List<PerfPlan.Case> cases = PerfPlan.cases(List.of(DataType.FLOAT32), List.of(Reduction.SUM),
            new PerfPlan.Sizes(1000, 2000, 2, 0), 1, 10, 1);
    private final PerfPlan plan = new PerfPlan(Operation.ALL_REDUCE, 4, cases, PerfPlan.Checking.AFTERWARDS, 1,
            Duration.ofSeconds(1), false, false, true);
    private final PerfResults results = new PerfResults(plan);

    private void measured(int rank, int index, double nanos, long wrong) {
        results.add(new PerfEvent.Measured(rank, index, new PerfEvent.CaseResult(nanos, wrong),
                new PerfEvent.CaseResult(nanos / 2, 0)));
    }

    @Test
    void aLineIsCompleteWhenEveryRankHasMeasuredIt() {
        measured(0, 0, 100, 0);
        measured(0, 1, 100, 0);
        measured(1, 0, 400, 2);
        measured(2, 0, 300, 3);
        assertTrue(results.takeComplete().isEmpty());
        measured(3, 0, 200, 0);
        List<PerfResults.Row> rows = results.takeComplete();
        assertEquals(List.of(new PerfResults.Row(cases.getFirst(), new PerfEvent.CaseResult(400, 5),
                new PerfEvent.CaseResult(200, 0), Optional.empty())), rows);
        assertTrue(results.takeComplete().isEmpty(), "only once");
        assertEquals(5, results.wrong());
    }

    @Test
    void bandwidthsAreThoseOfNcclTests() {
        PerfPlan.Case line = cases.getFirst();
        assertEquals(1000, line.bytes());
        PerfEvent.CaseResult sample = new PerfEvent.CaseResult(500, 0);
        assertEquals(2.0, PerfResults.algorithmBandwidth(line, sample), 1e-12);
        assertEquals(2.0 * 2 * 3 / 4, results.busBandwidth(line, sample), 1e-12);
        for (int rank = 0; rank < 4; rank++) {
            measured(rank, 0, 500, 0);
        }
        results.takeComplete();
        assertEquals((3.0 + 6.0) / 2, results.averageBusBandwidth(), 1e-12);
    }

    /** PERFORMANCE.md of nccl-tests defines the factors. The factors in this test are for 4 ranks. */
    @ParameterizedTest
    @CsvSource({"ALL_REDUCE, 1.5", "ALL_GATHER, 0.75", "REDUCE_SCATTER, 0.75", "BROADCAST, 1", "REDUCE, 1",
            "ALL_TO_ALL, 0.75", "GATHER, 0.75", "SCATTER, 0.75", "SEND_RECEIVE, 1"})
    void busFactorsAreThoseOfNcclTests(Operation operation, double factor) {
        PerfPlan other = new PerfPlan(operation, 4, cases, PerfPlan.Checking.AFTERWARDS, 1, Duration.ofSeconds(1),
                false, false, true);
        assertEquals(factor, new PerfResults(other).busBandwidth(cases.getFirst(), new PerfEvent.CaseResult(1000, 0)),
                1e-12);
    }

    @Test
    void ranksAreKnownByWhatTheyLastReported() {
        String others = ", rank 2 has not joined, rank 3 has not joined";
        assertEquals("rank 0 has not joined, rank 1 has not joined" + others, results.whereabouts());
        assertFalse(results.allJoined());
        results.add(new PerfEvent.Joined(1, 1, "h", "d"));
        measured(1, 0, 1, 0);
        assertEquals("rank 0 has not joined, rank 1 is at 2000 B float sum" + others, results.whereabouts());
        measured(1, 1, 1, 0);
        assertEquals("rank 0 has not joined, rank 1 is leaving" + others, results.whereabouts());
    }

    @Test
    void theTableHasTheColumnsOfNcclTests() {
        StringWriter text = new StringWriter();
        new PerfTable(new PrintWriter(text), plan, results, "", false)
                .print(new PerfResults.Row(cases.getFirst(), new PerfEvent.CaseResult(500, 5),
                        new PerfEvent.CaseResult(12_345_678, PerfEvent.CaseResult.UNCHECKED), Optional.empty()));
        List<String> lines = text.toString().lines().map(line -> line.strip().replaceAll(" +", " ")).toList();
        assertEquals("1000 250 float sum -1 0.50 2.00 3.00 5 12346 0.00 0.00 N/A", lines.getLast());
        assertEquals("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong", lines.get(1));
        assertFalse(text.toString().contains("route"), "nobody told one");
    }

    @Test
    void theRouteIsThatOfAllRanksAndShownWhenItChanges() {
        Route first = new Route("ring", "LL", "NORMAL", List.of("SHM"), List.of());
        for (int rank = 0; rank < 4; rank++) {
            results.add(new PerfEvent.Routed(rank, 0,
                    rank == 2 ? new Route("ring", "LL", "NORMAL", List.of("NET socket", "SHM"), List.of()) : first));
            results.add(new PerfEvent.Routed(rank, 1,
                    new Route("ring", rank == 3 ? "LL128" : "Simple", "NORMAL", List.of(), List.of())));
            measured(rank, 0, 1, 0);
            measured(rank, 1, 1, 0);
        }
        StringWriter text = new StringWriter();
        PerfTable table = new PerfTable(new PrintWriter(text), plan, results, "", false);
        List<PerfResults.Row> rows = results.takeComplete();
        rows.forEach(table::print);
        table.print(rows.getLast());
        List<String> lines = text.toString()
                .lines()
                .map(line -> line.strip().replaceAll(" +", " ").replaceAll("^(\\d+) .*", "$1"))
                .toList();
        assertEquals("# route: ring, LL, NORMAL, over NET socket, SHM", lines.getFirst(), text.toString());
        assertEquals(List.of("1000", "# route: ring, LL128+Simple, NORMAL", "2000", "2000"),
                lines.subList(4, lines.size()), text.toString());
    }
}
