package org.millrace.trace.why;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.millrace.trace.reader.TracedProcess;

class StallWatchTest {

    /** A look takes some milliseconds of a process that has just begun, and of the compiler. */
    @Test
    void nothingIsLookedAtBeforeItCanHaveStoodStill() {
        Duration quiet = Duration.ofSeconds(10);
        StallWatch watch = new StallWatch(() -> true, List::of, quiet, sentence -> {});
        long later = System.nanoTime() + quiet.toNanos();
        assertFalse(watch.isDue(later - quiet.toNanos()));
        assertTrue(watch.isDue(later));
        assertFalse(watch.isDue(later + quiet.toNanos() / 4 - 1));
        assertTrue(watch.isDue(later + quiet.toNanos() / 4));
    }

    /** Every look takes longer than a nanosecond: where cores are scarce they all take longer than anything given. */
    @Test
    void whatALookComesToIsToldHoweverLongItTook() throws IOException {
        List<String> told = new ArrayList<>();
        List<TracedProcess> still = List.of(HangTest.running(1));
        StallWatch watch = new StallWatch(() -> true, () -> still, Duration.ofNanos(4), told::add);
        watch.look();
        assertEquals(1, told.size());
        assertTrue(told.getFirst().contains("does not take what has arrived"), told.getFirst());
        watch.look();
        assertEquals(1, told.size());
    }
}
