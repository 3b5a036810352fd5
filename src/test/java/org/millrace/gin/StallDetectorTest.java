package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StallDetectorTest {

    private static final long SPAN = 1000;

    @ParameterizedTest
    @ValueSource(longs = {0, -5, Long.MAX_VALUE - 7})
    void itSpeaksOnceInASpan(long begin) {
        StallDetector detector = new StallDetector(Duration.ofNanos(SPAN));
        assertFalse(detector.isLong(begin));
        assertFalse(detector.isLong(begin + SPAN - 1));
        assertTrue(detector.isLong(begin + SPAN));
        assertFalse(detector.isLong(begin + SPAN + 1));
        assertTrue(detector.isLong(begin + 2 * SPAN));
        detector.reset();
        assertFalse(detector.isLong(begin + 4 * SPAN), "the first look after something moved begins anew");
        assertTrue(detector.isLong(begin + 5 * SPAN));
    }
}
