package org.millrace.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.millrace.agent.IdleProfile.TimedIdleStrategy.Stage;

/** Moments at which a thread without work spins, yields and parks, with the test's own clock and scheduler. */
class TimedIdleStrategyTest {

    private static final long SPIN = 4_000_000;
    private static final long YIELD = 6_000_000;
    private static final long LONGEST_PARK = 2_000_000;

    /** Counts calls. The test sets the duration of a yield. */
    private static final class TestScheduler implements IdleProfile.TimedIdleStrategy.Scheduler {
        private long now = Long.MAX_VALUE - 5_000; // this clock wraps while the thread is idle
        private long yieldLasts;
        private int yields;
        private int sharpened;
        private final List<Long> parks = new ArrayList<>();
        private Runnable meanwhile = () -> {};

        @Override
        public long nanoTime() {
            return now;
        }

        @Override
        public void yieldCore() {
            yields++;
            now += yieldLasts;
        }

        @Override
        public void park(long nanos) {
            parks.add(nanos);
            meanwhile.run();
        }

        @Override
        public void sharpenTimers() {
            sharpened++;
        }
    }

    private final TestScheduler scheduler = new TestScheduler();

    private IdleProfile.TimedIdleStrategy strategy(long spinNanos) {
        return new IdleProfile.TimedIdleStrategy(scheduler, spinNanos, YIELD, 1_000, LONGEST_PARK, LONGEST_PARK);
    }

    private static Stage idleUntilTheNextLook(IdleProfile.TimedIdleStrategy strategy) {
        for (int pass = 0; pass < IdleProfile.TimedIdleStrategy.CLOCK_INTERVAL; pass++) {
            strategy.idle(0);
        }
        return strategy.stage();
    }

    private Stage idleFor(IdleProfile.TimedIdleStrategy strategy, long nanos) {
        for (long left = nanos; left > 0; left -= 1_000_000) {
            scheduler.now += Math.min(left, 1_000_000);
            idleUntilTheNextLook(strategy);
        }
        return strategy.stage();
    }

    private IdleProfile.TimedIdleStrategy parking() {
        IdleProfile.TimedIdleStrategy strategy = strategy(SPIN);
        idleUntilTheNextLook(strategy);
        assertEquals(Stage.PARK, idleFor(strategy, SPIN + YIELD));
        return strategy;
    }

    @Test
    void stagesAreEnteredByTime() {
        IdleProfile.TimedIdleStrategy strategy = strategy(SPIN);
        assertEquals(Stage.SPIN, idleUntilTheNextLook(strategy), "the first look starts the clock");
        assertEquals(Stage.SPIN, idleFor(strategy, SPIN - 1));
        scheduler.now++;
        assertEquals(Stage.YIELD, idleUntilTheNextLook(strategy));
        assertEquals(Stage.YIELD, idleFor(strategy, YIELD - 1));
        scheduler.now++;
        assertEquals(Stage.PARK, idleUntilTheNextLook(strategy));
        assertEquals(Stage.PARK, idleUntilTheNextLook(strategy));
    }

    @Test
    void passesAloneChangeNothing() {
        IdleProfile.TimedIdleStrategy strategy = strategy(SPIN);
        for (int i = 0; i < 1000; i++) {
            assertEquals(Stage.SPIN, idleUntilTheNextLook(strategy));
        }
    }

    @Test
    void workBeginsAnew() {
        IdleProfile.TimedIdleStrategy strategy = parking();
        strategy.idle(1);
        assertEquals(Stage.SPIN, strategy.stage());
        assertEquals(Stage.SPIN, idleUntilTheNextLook(strategy));
        assertEquals(Stage.SPIN, idleFor(strategy, SPIN - 1));
        scheduler.now++;
        assertEquals(Stage.YIELD, idleUntilTheNextLook(strategy));
    }

    @Test
    void aSharedCoreIsYieldedAtOnce() {
        IdleProfile.TimedIdleStrategy strategy = strategy(0);
        strategy.idle(0);
        assertEquals(1, scheduler.yields);
        strategy.idle(1);
        assertEquals(Stage.YIELD, strategy.stage());
    }

    @Test
    void shortParksStandInForYieldsAfterALongOne() {
        IdleProfile.TimedIdleStrategy strategy = strategy(0);
        scheduler.yieldLasts = IdleProfile.TimedIdleStrategy.LONG_YIELD_NANOS;
        strategy.idle(0);
        strategy.idle(0);
        assertEquals(2, scheduler.yields, "both were short");
        scheduler.yieldLasts++;
        strategy.idle(0);
        strategy.idle(0);
        strategy.idle(1);
        strategy.idle(0);
        assertEquals(3, scheduler.yields);
        assertEquals(
                List.of(IdleProfile.TimedIdleStrategy.SHORT_PARK_NANOS, IdleProfile.TimedIdleStrategy.SHORT_PARK_NANOS),
                scheduler.parks);
        assertEquals(1, scheduler.sharpened, "timers that are late would make short parks long");
    }

    @Test
    void shortParksWithoutWorkBecomeLonger() {
        IdleProfile.TimedIdleStrategy strategy = strategy(0);
        scheduler.yieldLasts = IdleProfile.TimedIdleStrategy.LONG_YIELD_NANOS + 1;
        strategy.idle(0);
        for (int i = 0; i <= IdleProfile.TimedIdleStrategy.SHORT_PARKS; i++) {
            assertEquals(Stage.YIELD, strategy.stage());
            strategy.idle(0);
        }
        assertEquals(Stage.PARK, strategy.stage());
        scheduler.parks.clear();
        strategy.idle(0);
        scheduler.now += 1_000_000;
        strategy.idle(0);
        scheduler.now += 1_000_000_000;
        strategy.idle(0);
        assertEquals(List.of(1_000L, 1_000_000L / 20, LONGEST_PARK), scheduler.parks);
        strategy.idle(1);
        strategy.idle(0); // after new work, the strategy yields again
        strategy.idle(0);
        assertEquals(IdleProfile.TimedIdleStrategy.SHORT_PARK_NANOS, scheduler.parks.getLast(), "work begins anew");
    }

    @Test
    void yieldsAreTriedAgainLaterAndLaterWhileTheyAreLong() {
        IdleProfile.TimedIdleStrategy strategy = strategy(0);
        scheduler.yieldLasts = IdleProfile.TimedIdleStrategy.LONG_YIELD_NANOS + 1;
        long avoidance = IdleProfile.TimedIdleStrategy.LEAST_AVOIDANCE_NANOS;
        strategy.idle(0);
        for (int yields = 1; yields < 20; yields++) {
            strategy.idle(1);
            scheduler.now += avoidance - 1;
            strategy.idle(0);
            assertEquals(yields, scheduler.yields);
            scheduler.now++;
            strategy.idle(0);
            assertEquals(yields + 1, scheduler.yields);
            avoidance = Math.min(2 * avoidance, IdleProfile.TimedIdleStrategy.MAX_AVOIDANCE_NANOS);
        }
        assertEquals(1, scheduler.sharpened);
        scheduler.now += avoidance;
        scheduler.yieldLasts = 1;
        strategy.idle(0);
        strategy.idle(0);
        assertEquals(22, scheduler.yields, "a short one ends it");
    }

    @Test
    void aLongYieldAmongShortOnesIsFollowedByShortParksForAMillisecond() {
        IdleProfile.TimedIdleStrategy strategy = strategy(0);
        for (int i = 0; i < 3; i++) {
            yieldShortAndThenLong(strategy, 10 * IdleProfile.TimedIdleStrategy.LONG_YIELD_NANOS);
            assertAvoidsYieldsFor(strategy, IdleProfile.TimedIdleStrategy.AVOIDANCE_OF_RARE_NANOS);
        }
    }

    @Test
    void aLongYieldOfMoreThanAQuarterOfTheShortOnesTimeIsFollowedByMoreShortParks() {
        IdleProfile.TimedIdleStrategy strategy = strategy(0);
        for (int i = 0; i < 3; i++) {
            yieldShortAndThenLong(strategy, 10 * IdleProfile.TimedIdleStrategy.LONG_YIELD_NANOS + 2);
            assertAvoidsYieldsFor(strategy, IdleProfile.TimedIdleStrategy.LEAST_AVOIDANCE_NANOS);
        }
    }

    /** Yields forty times with the longest duration that counts as short, and then once with the given duration. */
    private void yieldShortAndThenLong(IdleProfile.TimedIdleStrategy strategy, long nanos) {
        scheduler.yieldLasts = IdleProfile.TimedIdleStrategy.LONG_YIELD_NANOS;
        for (int i = 0; i < 40; i++) {
            strategy.idle(0);
        }
        scheduler.yieldLasts = nanos;
        strategy.idle(0);
    }

    /**
     * Asserts that the strategy does not yield during the given time, and yields afterwards. The yield takes a
     * nanosecond.
     */
    private void assertAvoidsYieldsFor(IdleProfile.TimedIdleStrategy strategy, long nanos) {
        scheduler.yieldLasts = 1;
        int yields = scheduler.yields;
        scheduler.now += nanos - 1;
        strategy.idle(0);
        assertEquals(yields, scheduler.yields);
        scheduler.now++;
        strategy.idle(0);
        assertEquals(yields + 1, scheduler.yields);
        strategy.idle(1);
    }

    @Test
    void whatTookTheCoreBeforeIsForgotten() {
        IdleProfile.TimedIdleStrategy strategy = strategy(0);
        scheduler.yieldLasts = IdleProfile.TimedIdleStrategy.LONG_YIELD_NANOS + 1;
        for (int i = 0; i < 4; i++) {
            strategy.idle(0);
            scheduler.now += IdleProfile.TimedIdleStrategy.MAX_AVOIDANCE_NANOS;
        }
        strategy.idle(0);
        strategy.idle(0);
        assertEquals(5, scheduler.yields);
        assertEquals(1, scheduler.parks.size());
        scheduler.yieldLasts = 1;
        strategy.forget();
        strategy.idle(0);
        strategy.idle(0);
        assertEquals(7, scheduler.yields, "no short park stands in for a yield");
        assertEquals(1, scheduler.parks.size());
        scheduler.yieldLasts = IdleProfile.TimedIdleStrategy.LONG_YIELD_NANOS + 1;
        strategy.idle(0);
        scheduler.now += IdleProfile.TimedIdleStrategy.LEAST_AVOIDANCE_NANOS;
        strategy.idle(0);
        assertEquals(9, scheduler.yields, "and the next avoidance is the shortest");
    }

    @Test
    void aThreadThatIsToForgetParksNoMore() {
        IdleProfile.TimedIdleStrategy strategy = parking();
        strategy.forget();
        strategy.idle(0);
        assertEquals(List.of(), scheduler.parks);
        assertEquals(Stage.SPIN, strategy.stage());
    }

    @Test
    void aThreadThatLosesItsCoreWhileItSpinsYieldsForAWhile() {
        IdleProfile.TimedIdleStrategy strategy = strategy(SPIN);
        idleUntilTheNextLook(strategy);
        scheduler.now += IdleProfile.TimedIdleStrategy.LOST_CORE_NANOS - 1;
        assertEquals(Stage.SPIN, idleUntilTheNextLook(strategy), "passes may be slow");
        long avoidance = IdleProfile.TimedIdleStrategy.LEAST_AVOIDANCE_NANOS;
        for (int loss = 0; loss < 20; loss++) {
            scheduler.now += IdleProfile.TimedIdleStrategy.LOST_CORE_NANOS;
            assertEquals(Stage.YIELD, idleUntilTheNextLook(strategy));
            strategy.idle(1);
            assertEquals(Stage.YIELD, strategy.stage(), "work does not give the core back");
            scheduler.now += avoidance - 1;
            strategy.idle(0);
            strategy.idle(1);
            assertEquals(Stage.YIELD, strategy.stage());
            scheduler.now++;
            strategy.idle(0);
            strategy.idle(1);
            assertEquals(Stage.SPIN, strategy.stage(), "it tries again");
            idleUntilTheNextLook(strategy);
            avoidance = Math.min(2 * avoidance, IdleProfile.TimedIdleStrategy.MAX_AVOIDANCE_NANOS);
        }
        scheduler.now += 3 * IdleProfile.TimedIdleStrategy.MAX_AVOIDANCE_NANOS;
        strategy.idle(1);
        idleUntilTheNextLook(strategy);
        scheduler.now += IdleProfile.TimedIdleStrategy.LOST_CORE_NANOS;
        assertEquals(Stage.YIELD, idleUntilTheNextLook(strategy));
        scheduler.now += IdleProfile.TimedIdleStrategy.LEAST_AVOIDANCE_NANOS;
        strategy.idle(0);
        strategy.idle(1);
        assertEquals(Stage.SPIN, strategy.stage(), "a loss that stands alone counts little");
    }

    @Test
    void timeThatAPassWithWorkTookIsNotMissing() {
        IdleProfile.TimedIdleStrategy strategy = strategy(SPIN);
        idleUntilTheNextLook(strategy);
        scheduler.now += IdleProfile.TimedIdleStrategy.LOST_CORE_NANOS;
        strategy.idle(1);
        assertEquals(Stage.SPIN, idleUntilTheNextLook(strategy));
    }

    @Test
    void parksAreATwentiethOfTheTimeThatWasIdle() {
        IdleProfile.TimedIdleStrategy strategy = parking();
        strategy.idle(0);
        scheduler.now += 10_000_000;
        strategy.idle(0);
        scheduler.now += 1_000_000_000L;
        strategy.idle(0);
        assertEquals(List.of((SPIN + YIELD) / 20, (SPIN + YIELD + 10_000_000) / 20, LONGEST_PARK), scheduler.parks);
    }

    @Test
    void longParksAreATwoHundredthOfTheTimeThatWasIdle() {
        IdleProfile.TimedIdleStrategy strategy =
                new IdleProfile.TimedIdleStrategy(scheduler, SPIN, YIELD, 1_000, 5_000_000, 50_000_000);
        idleUntilTheNextLook(strategy);
        long start = scheduler.now;
        idleFor(strategy, SPIN + YIELD);
        List<Integer> passes = new ArrayList<>();
        for (long idle : List.of(40_000_000L, 1_000_000_000L, 4_000_000_000L, 60_000_000_000L)) {
            scheduler.now = start + idle;
            passes.add(passesUntilTheNextPark(strategy));
        }
        assertEquals(List.of(2_000_000L, 5_000_000L, 20_000_000L, 50_000_000L), scheduler.parks);
        assertEquals(List.of(1, 1, 1, 4), passes, "there are as many passes as with parks of 5 ms");
        assertEquals(10, passesUntilTheNextPark(strategy));
    }

    private int passesUntilTheNextPark(IdleProfile.TimedIdleStrategy strategy) {
        int before = scheduler.parks.size();
        int passes = 0;
        while (scheduler.parks.size() == before) {
            strategy.idle(0);
            passes++;
        }
        return passes;
    }

    @Test
    void workEndsThePassesAfterALongPark() {
        IdleProfile.TimedIdleStrategy strategy =
                new IdleProfile.TimedIdleStrategy(scheduler, SPIN, YIELD, 1_000, 5_000_000, 50_000_000);
        idleUntilTheNextLook(strategy);
        idleFor(strategy, SPIN + YIELD);
        scheduler.now += 60_000_000_000L;
        strategy.idle(0);
        strategy.idle(1);
        idleUntilTheNextLook(strategy);
        idleFor(strategy, SPIN + YIELD);
        strategy.idle(0);
        assertEquals(List.of(50_000_000L, (SPIN + YIELD) / 20), scheduler.parks);
    }

    @Test
    void wakingEndsAParkAndBeginsAnew() {
        IdleProfile.TimedIdleStrategy strategy = parking();
        strategy.wake(Thread.currentThread());
        strategy.idle(0);
        assertEquals(Stage.PARK, strategy.stage(), "it had not parked when it was woken");
        scheduler.meanwhile = () -> strategy.wake(Thread.currentThread());
        strategy.idle(0);
        assertEquals(Stage.SPIN, strategy.stage());
    }

    @Test
    void aParkIsASleepAndASpinIsNone() {
        IdleProfile.TimedIdleStrategy strategy = parking();
        assertFalse(strategy.slept());
        strategy.idle(0);
        assertTrue(strategy.slept());
        strategy.idle(1);
        assertFalse(strategy.slept());
    }

    @Test
    void wakingBetweenTwoParksIsNotMissed() {
        IdleProfile.TimedIdleStrategy strategy = parking();
        strategy.idle(0);
        strategy.wake(Thread.currentThread());
        strategy.idle(0);
        assertEquals(Stage.SPIN, strategy.stage());
        LockSupport.park(); // without this call, the thread's permit to park would affect the next test
    }

    @Test
    void aWakeIsNoticedAtTheNextPassAfterALongPark() {
        IdleProfile.TimedIdleStrategy strategy =
                new IdleProfile.TimedIdleStrategy(scheduler, SPIN, YIELD, 1_000, 5_000_000, 50_000_000);
        idleUntilTheNextLook(strategy);
        idleFor(strategy, SPIN + YIELD);
        scheduler.now += 60_000_000_000L;
        strategy.idle(0);
        strategy.wake(Thread.currentThread());
        strategy.idle(0);
        assertEquals(Stage.SPIN, strategy.stage());
        assertEquals(List.of(50_000_000L), scheduler.parks);
        LockSupport.park();
    }

    @Test
    void workBetweenAWakeAndTheNextParkIsWhatTheWakeWasFor() {
        IdleProfile.TimedIdleStrategy strategy = parking();
        strategy.idle(0);
        strategy.wake(Thread.currentThread());
        strategy.idle(1);
        idleUntilTheNextLook(strategy);
        assertEquals(Stage.PARK, idleFor(strategy, SPIN + YIELD));
        strategy.idle(0);
        assertEquals(Stage.PARK, strategy.stage(), "it begins anew once");
        LockSupport.park();
    }

    @Test
    void impossibleTimesAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> new IdleProfile.TimedIdleStrategy(-1, 0, 1, 1));
        assertThrows(IllegalArgumentException.class, () -> new IdleProfile.TimedIdleStrategy(0, 0, 0, 1));
        assertThrows(IllegalArgumentException.class, () -> new IdleProfile.TimedIdleStrategy(0, 0, 2, 1));
    }
}
