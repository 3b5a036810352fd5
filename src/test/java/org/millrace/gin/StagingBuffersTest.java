package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Set;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StagingBuffersTest {

    /** Copies that complete when the test decides. */
    private static final class Copies implements StagingBuffers.Copies {
        private int begun;
        private int over;
        private int mark;

        @Override
        public void mark() {
            mark = begun;
        }

        @Override
        public boolean arePastMark() {
            return over >= mark;
        }
    }

    private final Copies copies = new Copies();

    private static Set<Integer> all(IntSupplier take) {
        Set<Integer> taken = new HashSet<>();
        for (int buffer = take.getAsInt(); buffer >= 0; buffer = take.getAsInt()) {
            assertTrue(taken.add(buffer), "buffer " + buffer + " was given twice");
        }
        return taken;
    }

    @ParameterizedTest
    @ValueSource(ints = {3, 4, 5, 12, 64})
    void whoeverTakesAllItCanLeavesTheOthersSome(int count) {
        StagingBuffers buffers = new StagingBuffers(count, copies);
        Set<Integer> sending = all(buffers::takeToSend);
        Set<Integer> receiving = all(buffers::takeToReceive);
        Set<Integer> adding = all(buffers::takeToAdd);
        assertTrue(!sending.isEmpty() && !receiving.isEmpty(), sending + ", " + receiving);
        assertEquals(1, adding.size());
        assertEquals(count, sending.size() + receiving.size() + adding.size(), "none lies idle");
        Set<Integer> every = new HashSet<>(sending);
        every.addAll(receiving);
        every.addAll(adding);
        assertEquals(count, every.size(), "none has two uses");

        sending.forEach(buffers::give);
        receiving.forEach(buffers::give);
        adding.forEach(buffers::give);
        assertEquals(sending.size(), all(buffers::takeToReceive).size(),
                "what arrives may have as much as what leaves");
        assertEquals(receiving.size(), all(buffers::takeToSend).size());
        assertEquals(1, all(buffers::takeToAdd).size());
    }

    @Test
    void thoseThatWereAbandonedComeBackWhenTheirCopiesAreOver() {
        StagingBuffers buffers = new StagingBuffers(8, copies);
        copies.begun = 3;
        int first = buffers.takeToSend();
        int second = buffers.takeToReceive();
        buffers.abandon(first);
        copies.begun = 5;
        buffers.abandon(second);
        copies.begun = 7;
        copies.over = 4;
        Set<Integer> others = all(buffers::takeToReceive);
        others.addAll(all(buffers::takeToSend));
        others.addAll(all(buffers::takeToAdd));
        assertEquals(6, others.size());
        assertTrue(!others.contains(first) && !others.contains(second), "taken before the copies were over: " + others);
        others.forEach(buffers::give);
        copies.over = 5;
        assertEquals(6, all(buffers::takeToReceive).size(), "as many as on the first day");
        assertEquals(1, all(buffers::takeToSend).size());
        assertEquals(1, all(buffers::takeToAdd).size());
    }

    @Test
    void everyUseNeedsABuffer() {
        assertThrows(IllegalArgumentException.class, () -> new StagingBuffers(2, copies));
    }
}
