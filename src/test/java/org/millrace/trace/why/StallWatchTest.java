package org.millrace.trace.why;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class StallWatchTest {

    /** A look takes some milliseconds of a process that has just begun, and of the compiler. */
    @Test
    void nothingIsLookedAtBeforeItCanHaveStoodStill() {
        Duration quiet = Duration.ofSeconds(10);
        StallWatch watch = new StallWatch(null, quiet, sentence -> {});
        long later = System.nanoTime() + quiet.toNanos();
        assertFalse(watch.isDue(later - quiet.toNanos()));
        assertTrue(watch.isDue(later));
        assertFalse(watch.isDue(later + quiet.toNanos() / 4 - 1));
        assertTrue(watch.isDue(later + quiet.toNanos() / 4));
    }
}
