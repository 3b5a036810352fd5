package org.millrace.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.agent.IdleProfile.Backoff;

/** A thread spins while it has the core to itself, and yields at once when another thread shares the core. */
class BackoffTest {

    private static final int SPINS = 5;

    private long now;
    private int looks;
    private long yieldTakes;
    private final Backoff strategy = new Backoff(this::clock, SPINS, 1000, 1, 1, Sleeper.PARK, null);

    /** Clock of the strategy. The strategy reads the clock before and after each yield. */
    private long clock() {
        now += ++looks % 2 == 0 ? yieldTakes : 0;
        return now;
    }

    private int yieldsWithin(int passes) {
        int before = looks;
        for (int pass = 0; pass < passes; pass++) {
            strategy.idle(0);
        }
        return (looks - before) / 2;
    }

    @Test
    void spinsFirstWhileNobodyElseRuns() {
        yieldTakes = Backoff.SWITCHED_NANOS;
        for (int period = 0; period < 3; period++) {
            assertEquals(2, yieldsWithin(SPINS + 2));
            assertFalse(strategy.isShared());
            strategy.idle(1);
        }
    }

    @Test
    void yieldsAtOnceWhileAnotherThreadRuns() {
        yieldTakes = Backoff.SWITCHED_NANOS + 1;
        assertEquals(1, yieldsWithin(SPINS + 1));
        assertTrue(strategy.isShared());
        strategy.idle(1);
        assertEquals(4, yieldsWithin(4), "it spins on a core that another thread wants");
        yieldTakes = 0;
        assertEquals(1, yieldsWithin(1));
        assertFalse(strategy.isShared());
        strategy.idle(1);
        assertEquals(0, yieldsWithin(SPINS), "it yields a core that nobody wants");
    }

    @Test
    void sleepsInTheEnd() {
        yieldsWithin(SPINS + 1000);
        assertEquals(0, yieldsWithin(10), "it yields and does not sleep");
        strategy.idle(1);
        assertEquals(1, yieldsWithin(SPINS + 1));
    }

    /**
     * NCCL_PROXY_IDLE_THRESHOLD (number of idle passes) and NCCL_PROXY_IDLE_SLEEP_US (longest sleep) apply to every
     * proxy.
     */
    @ParameterizedTest
    @CsvSource({"1, 1000", "7, 30000", "1000, 12000"})
    void afterSoManyPassesItSleepsForSoLongAtTheMost(int passes, long longest) {
        Optional<Integer> threshold = Optional.of(passes);
        Optional<Long> sleep = Optional.of(longest);
        for (IdleStrategy set : List.of(IdleProfile.takeoverProxy(true, threshold, sleep),
                IdleProfile.takeoverProxy(false, threshold, sleep), IdleProfile.ginProxy(false, threshold, sleep),
                IdleProfile.ginProxy(true, threshold, sleep))) {
            Backoff backoff = (Backoff) set;
            for (int period = 0; period < 2; period++) {
                for (int pass = 0; pass < passes; pass++) {
                    assertEquals(0, backoff.sleepNanos(), "pass " + pass);
                    backoff.idle(0);
                }
                for (int more = 0; more < 5; more++) {
                    long nanos = backoff.sleepNanos();
                    assertTrue(nanos > 0 && nanos <= longest, nanos + " ns");
                    backoff.idle(0);
                }
                assertEquals(longest, backoff.sleepNanos());
                backoff.idle(1);
            }
        }
    }
}
