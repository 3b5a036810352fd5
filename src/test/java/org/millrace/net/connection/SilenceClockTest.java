package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Duration of a stream's silence, as calculated at each check. The test sets the clocks. */
class SilenceClockTest {

    private static final long SECOND = 1_000_000_000;

    private long now = 7 * SECOND;
    private long runnable;
    private final SilenceClock clock = new SilenceClock(() -> now, () -> runnable);

    @Test
    void aLookIsDueOnceASecond() {
        now += SECOND - 1;
        assertEquals(0, clock.due());
        now++;
        assertEquals(SECOND, clock.due());
        assertEquals(0, clock.due());
        now += SECOND + 5;
        assertEquals(SECOND + 5, clock.due());
    }

    /** A wait for a core is part of the silence, because the operating system receives data during the wait. */
    @Test
    void aThreadWithoutACoreCountsTheWholeTime() {
        runnable += SECOND; // the thread has waited for a core before the first check
        now += SECOND;
        clock.due();
        now += 12 * SECOND;
        runnable += 11 * SECOND;
        assertEquals(12 * SECOND, clock.due());
    }

    @Test
    void aStoppedProcessCountsTwoSeconds() {
        now += SECOND;
        clock.due();
        now += 12 * SECOND;
        runnable += SECOND / 10;
        assertEquals(2 * SECOND + SECOND / 10, clock.due());
        now += SECOND;
        assertEquals(SECOND, clock.due(), "nothing is left over");
    }

    @Test
    void theKernelCountsTheTimeOfThisThread() {
        long before = SilenceClock.runnableNanos();
        for (long end = System.nanoTime() + 20_000_000; System.nanoTime() - end < 0;) {
            Thread.onSpinWait(); // the loop consumes processor time
        }
        long used = SilenceClock.runnableNanos() - before;
        assertTrue(used == 0 && before == 0 || used > 0, used + " after " + before);
    }
}
