package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StallClockTest {

    private static final long SPAN = 1000;

    @ParameterizedTest
    @ValueSource(longs = {0, -5, Long.MAX_VALUE - 7})
    void itSpeaksOnceInASpan(long begin) {
        StallClock clock = new StallClock(Duration.ofNanos(SPAN));
        assertFalse(clock.isLong(begin));
        assertFalse(clock.isLong(begin + SPAN - 1));
        assertTrue(clock.isLong(begin + SPAN));
        assertFalse(clock.isLong(begin + SPAN + 1));
        assertTrue(clock.isLong(begin + 2 * SPAN));
        clock.reset();
        assertFalse(clock.isLong(begin + 4 * SPAN), "the first look after something moved begins anew");
        assertTrue(clock.isLong(begin + 5 * SPAN));
    }
}
