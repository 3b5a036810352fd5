package org.millrace.agent;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.millrace.ThreadSleeps;

class WaitingTest {

    private static final int PAUSES = 100;
    private static final long PAUSE_NANOS = 50_000;

    @Test
    void anInterruptedThreadSleepsInEachPause() {
        Thread.currentThread().interrupt();
        long before = ThreadSleeps.now();
        for (int i = 0; i < PAUSES; i++) {
            Waiting.pause(PAUSE_NANOS);
        }
        long sleeps = ThreadSleeps.now() - before;
        assertTrue(Thread.interrupted(), "the interrupt status is kept");
        assertTrue(sleeps > PAUSES / 2, () -> sleeps + " sleeps in " + PAUSES + " pauses");
    }
}
