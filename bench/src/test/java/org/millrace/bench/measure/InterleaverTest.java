package org.millrace.bench.measure;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class InterleaverTest {

    private static final Effort EFFORT = new Effort(100_000, 50_000, 6, 1, 1, 0, false);

    @Test
    void sidesTakeTurnsAndTheOrderChanges() {
        List<String> calls = new ArrayList<>();
        Samples samples = new Interleaver(EFFORT).measure(Pair.same("id", "group", "title", count -> {
            calls.add("java");
            return count;
        }, count -> {
            calls.add("c");
            return count;
        }));
        assertEquals(6, samples.java().length);
        assertEquals(6, samples.c().length);
        assertEquals(List.of("java", "c", "c", "java", "java", "c", "c", "java", "java", "c", "c", "java"),
                calls.subList(calls.size() - 12, calls.size()));
    }

    @Test
    void withoutCThereAreNoSamplesOfIt() {
        assertEquals(0,
                new Interleaver(EFFORT).measure(Pair.same("id", "group", "title", count -> count, null)).c().length);
    }

    @Test
    void aLostPartnerIsAnError() {
        IllegalStateException failure = assertThrows(IllegalStateException.class,
                () -> new Interleaver(EFFORT).measure(Pair.same("ring", "group", "title", count -> Loop.LOST, null)));
        assertTrue(failure.getMessage().contains("ring"));
    }

    @Test
    void effortSurvivesTheCommandLine() {
        assertEquals(Effort.FULL, Effort.parse(Effort.FULL.text()));
    }
}
