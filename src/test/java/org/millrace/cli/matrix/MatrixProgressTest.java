package org.millrace.cli.matrix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.millrace.Operation;

class MatrixProgressTest {

    private final CellGroup group = new CellGroup(0, 2, true, new TransportVariant("SHM", List.of("ring"), Map.of()),
            "ring", "LL", CellGroup.Mode.NORMAL, List.of());
    private final StringWriter text = new StringWriter();

    private MatrixProgress progress(boolean terminal) {
        return new MatrixProgress(new PrintWriter(text, true), terminal, 5);
    }

    private CellResult result(long wrong, int ran, String failure) {
        CellResult result = new CellResult(group, new CellGroup.Cell(0, Operation.REDUCE));
        result.add(new MatrixWorker.CellReport(0, 0, wrong, ran, "", failure));
        result.add(new MatrixWorker.CellReport(1, 0, wrong, ran, "", ""));
        return result;
    }

    @Test
    void onATerminalOneLineIsWrittenOverAndGone() {
        MatrixProgress progress = progress(true);
        progress.begin(group);
        String none = "# 2 ranks, processes: 0 of 5 cells, 0 ran, 0 wrong, 0 s";
        assertEquals(none, text.toString());
        progress.add(result(3, 1, ""));
        progress.begin(group);
        String erased = "\r" + " ".repeat(none.length()) + "\r";
        String one = "# 2 ranks, processes: 1 of 5 cells, 1 ran, 6 wrong, ";
        assertTrue(text.toString().startsWith(none + erased + one), text.toString());
        progress.end();
        assertTrue(text.toString().endsWith(erased), text.toString());
        assertFalse(text.toString().contains("\n"), text.toString());
    }

    @Test
    void elsewhereThereIsALineAtTheEnd() {
        MatrixProgress progress = progress(false);
        progress.begin(group);
        progress.add(result(0, 1, ""));
        progress.add(result(0, 0, ""));
        progress.add(result(0, 0, "lost"));
        progress.tick();
        assertEquals("", text.toString());
        progress.end();
        assertTrue(text.toString().matches("# 2 ranks, processes: 3 of 5 cells, 1 ran, 0 wrong, 1 failed, \\d+ s\\R"),
                text.toString());
    }
}
