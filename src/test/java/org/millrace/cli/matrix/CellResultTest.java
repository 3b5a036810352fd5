package org.millrace.cli.matrix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.millrace.Operation;
import org.millrace.cli.perf.RankEvent;

/** Wrong elements belong to the cell that ran. */
class CellResultTest {

    private final CellResult result =
            new CellResult(new Group(0, 2, false, new Way("P2P", List.of("ring"), Map.of()), "ring", "Simple", Mode.NORMAL, List.of()), new Cell(0, Operation.BROADCAST));

    @Test
    void wrongElementsOfACellThatRanAreCounted() {
        result.add(new RankEvent.Checked(0, 0, 1, 3, "", ""));
        result.add(new RankEvent.Checked(1, 0, 2, 3, "", ""));
        assertEquals(3, result.wrong());
    }

    @Test
    void wrongElementsOfAnotherWayAreNotThisCells() {
        result.add(new RankEvent.Checked(0, 0, 0, 0, "P2P: not possible", ""));
        result.add(new RankEvent.Checked(1, 0, 1, 3, "", "")); // only receives, and sees no transport
        assertTrue(result.isImpossible());
        assertEquals(0, result.wrong());
        assertEquals("P2P: not possible", result.reason());
    }
}
