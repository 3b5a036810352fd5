package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.millrace.Operation;

class CellResultTest {

    private final CellResult result =
            new CellResult(new CellGroup(0, 2, false, new TransportVariant("P2P", List.of("ring"), Map.of()), "ring",
                    "LL", CellGroup.Mode.NORMAL, List.of()), new CellGroup.Cell(0, Operation.BROADCAST));

    /**
     * A rank that only receives cannot detect that the data took another route. Wrong elements in its report therefore
     * do not count.
     */
    @Test
    void whatIsWrongOnAnotherWayIsNotThisCells() {
        result.add(new MatrixWorker.CellReport(0, 0, 0, 0, "P2P: switched off", ""));
        result.add(new MatrixWorker.CellReport(1, 0, 4, 3, "", ""));
        assertTrue(result.isComplete() && result.isImpossible() && result.isGood());
        assertEquals(0, result.wrong());
        assertEquals("P2P: switched off", result.reason());
    }

    @Test
    void whatIsWrongOnTheWayThatWasAskedForIs() {
        result.add(new MatrixWorker.CellReport(0, 0, 0, 3, "", ""));
        result.add(new MatrixWorker.CellReport(1, 0, 4, 3, "", ""));
        assertTrue(result.hasRun());
        assertFalse(result.isGood());
        assertEquals(4, result.wrong());
    }
}
