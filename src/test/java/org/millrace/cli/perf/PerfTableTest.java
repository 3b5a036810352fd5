package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.millrace.DataType;
import org.millrace.Operation;

class PerfTableTest {

    private final List<PerfPlan.Case> cases =
            PerfPlan.cases(List.of(DataType.FLOAT32), List.of(Reduction.SUM), new PerfPlan.Sizes(8, 16, 2, 0), 1, 1, 0);
    private final PerfPlan plan = new PerfPlan(Operation.ALL_REDUCE, 1, cases, PerfPlan.Checking.AFTERWARDS, 1,
            Duration.ofSeconds(1), false, false, true);
    private final PerfResults results = new PerfResults(plan);
    private final StringWriter text = new StringWriter();

    private PerfTable table(boolean terminal) {
        return new PerfTable(new PrintWriter(text), plan, results, "how", terminal);
    }

    @Test
    void onATerminalALineSaysWhatIsGoingOnAndGivesWayToTheTable() {
        PerfTable table = table(true);
        table.waiting();
        assertEquals("the ranks are joining, 0 s", text.toString());
        table.heard(new PerfEvent.Joined(0, 1, "h", "d"));
        assertTrue(text.toString().startsWith("the ranks are joining, 0 s\r" + " ".repeat(26) + "\r# all_reduce: how"),
                text.toString());
        table.waiting();
        assertTrue(text.toString().endsWith("line 1 of 2: 8 B float sum, 0 s"), text.toString());
    }

    @Test
    void elsewhereThereIsNoSuchLine() {
        PerfTable table = table(false);
        table.waiting();
        table.eraseStatus();
        assertFalse(text.toString().contains("joining") || text.toString().contains("\r"), text.toString());
    }
}
