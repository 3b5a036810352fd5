package org.millrace.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.millrace.agent.IdleProfile.Timed.Stage;

/** When a thread without work spins, yields and parks, on a clock of the test's own. */
class TimedIdleStrategyTest {

    private static final long SPIN = 4_000;
    private static final long YIELD = 6_000;

    private long now = Long.MAX_VALUE - 5_000; // the clock wraps while the thread is idle
    private final IdleProfile.Timed strategy = new IdleProfile.Timed(() -> now, SPIN, YIELD, 1, 1);

    private Stage idleUntilTheNextLook() {
        for (int pass = 0; pass < IdleProfile.Timed.CLOCK_INTERVAL; pass++) {
            strategy.idle(0);
        }
        return strategy.stage();
    }

    @Test
    void stagesAreEnteredByTime() {
        assertEquals(Stage.SPIN, idleUntilTheNextLook(), "the first look starts the clock");
        now += SPIN - 1;
        assertEquals(Stage.SPIN, idleUntilTheNextLook());
        now++;
        assertEquals(Stage.YIELD, idleUntilTheNextLook());
        now += YIELD - 1;
        assertEquals(Stage.YIELD, idleUntilTheNextLook());
        now++;
        assertEquals(Stage.PARK, idleUntilTheNextLook());
        assertEquals(Stage.PARK, idleUntilTheNextLook());
    }

    @Test
    void passesAloneChangeNothing() {
        for (int i = 0; i < 1000; i++) {
            assertEquals(Stage.SPIN, idleUntilTheNextLook());
        }
    }

    @Test
    void workBeginsAnew() {
        idleUntilTheNextLook();
        now += SPIN + YIELD;
        assertEquals(Stage.PARK, idleUntilTheNextLook());
        strategy.idle(1);
        assertEquals(Stage.SPIN, strategy.stage());
        assertEquals(Stage.SPIN, idleUntilTheNextLook());
        now += SPIN - 1;
        assertEquals(Stage.SPIN, idleUntilTheNextLook());
        now++;
        assertEquals(Stage.YIELD, idleUntilTheNextLook());
    }

    @Test
    void impossibleTimesAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> new IdleProfile.Timed(-1, 0, 1, 1));
        assertThrows(IllegalArgumentException.class, () -> new IdleProfile.Timed(0, 0, 0, 1));
        assertThrows(IllegalArgumentException.class, () -> new IdleProfile.Timed(0, 0, 2, 1));
    }
}
