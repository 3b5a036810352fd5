package org.millrace.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class FenceBenchmarkTest {

    @Test
    void pinnedMemoryIsLeftOutWithoutCudaUnlessItWasAskedFor() {
        assertEquals(List.of("Fence", "-p", "memory=array,native,mapped"),
                FenceBenchmark.arguments(List.of("Fence"), "no CUDA"));
        assertEquals(List.of("Fence"), FenceBenchmark.arguments(List.of("Fence"), ""));
        assertEquals(List.of("-p", "memory=pinned"),
                FenceBenchmark.arguments(List.of("-p", "memory=pinned"), "no CUDA"));
    }

    @Test
    void aJvmMeasuresOneKindOfMemory() {
        FenceBenchmark benchmark = new FenceBenchmark();
        benchmark.memory = "array";
        benchmark.setUp();
        benchmark.slotThenHead();
        assertEquals(1, benchmark.headThenSlot());
        benchmark.memory = "native";
        assertTrue(assertThrows(IllegalStateException.class, benchmark::setUp).getMessage().contains("array"));
    }
}
