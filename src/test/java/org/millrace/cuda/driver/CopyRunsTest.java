package org.millrace.cuda.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Long runs of relaxed copies are spread, and short runs are not. */
class CopyRunsTest {

    private static final int LIMIT = CopyRuns.COPIES_BY_WORKER;

    private final CopyRuns runs = new CopyRuns(32);

    /** Records a run of a worker and the strict copy after it. Returns the number of spread copies. */
    private int run(int worker, int length) {
        int spread = 0;
        for (int i = 0; i < length; i++) {
            spread += runs.spreads(worker, false) ? 1 : 0;
        }
        assertFalse(runs.spreads(worker, true));
        return spread;
    }

    @Test
    void copiesBeforeTheFirstStrictCopyAreSpread() {
        assertEquals(3, run(1, 3));
    }

    @Test
    void shortRunsAreNotSpread() {
        run(1, LIMIT);
        assertEquals(0, run(1, LIMIT));
        assertEquals(0, run(1, 0));
        assertEquals(0, run(1, LIMIT));
    }

    @Test
    void aLongRunIsSpreadFromItsLimitAndTheNextOneFromItsBeginning() {
        run(1, 0);
        assertEquals(10, run(1, LIMIT + 10));
        assertEquals(LIMIT + 10, run(1, LIMIT + 10));
        assertEquals(2, run(1, 2), "the prediction was wrong once");
        assertEquals(0, run(1, 2));
    }

    /** The number of active workers is known after a window. */
    @ParameterizedTest
    @CsvSource({"1, 6, 0", "1, 7, 7", "4, 24, 0", "4, 25, 25", "16, 15, 0", "32, 7, 0"})
    void theLimitGrowsWithTheNumberOfActiveWorkers(int workers, int length, int spread) {
        for (int copies = 0; copies < 4 * CopyRuns.WINDOW; copies += workers * (length + 1)) {
            for (int worker = 1; worker <= workers; worker++) {
                run(worker, length);
            }
        }
        assertEquals(spread, run(1, length));
    }

    @Test
    void workersOfAnEarlierWindowAreNotActive() {
        for (int i = 0; i < CopyRuns.WINDOW; i++) {
            runs.spreads(1 + i % 32, true);
        }
        assertEquals(0, run(1, LIMIT + 1));
        while (runs.spreads(1, true) || run(1, LIMIT + 1) == 0) {
            // a window has 256 copies
        }
        assertEquals(LIMIT + 1, run(1, LIMIT + 1));
    }
}
