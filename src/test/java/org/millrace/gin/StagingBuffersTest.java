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
        StagingBuffers buffers = new StagingBuffers(count);
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
        assertEquals(sending.size(), all(buffers::takeToReceive).size(), "what arrives may have as much as what leaves");
        assertEquals(receiving.size(), all(buffers::takeToSend).size());
        assertEquals(1, all(buffers::takeToAdd).size());
    }

    @Test
    void everyUseNeedsABuffer() {
        assertThrows(IllegalArgumentException.class, () -> new StagingBuffers(2));
    }
}
