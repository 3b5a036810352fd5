package org.millrace.foreign;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

public class PageMemoryTest {

    private static final long BYTES = 5 << 20;

    /** Returns whether a page of the process contains the address. */
    public static boolean isMapped(long address) throws IOException {
        try (var lines = Files.lines(Path.of("/proc/self/maps"))) {
            return lines.map(line -> line.split("[- ]"))
                    .anyMatch(range -> Long.compareUnsigned(address, Long.parseUnsignedLong(range[0], 16)) >= 0
                            && Long.compareUnsigned(address, Long.parseUnsignedLong(range[1], 16)) < 0);
        }
    }

    @Test
    void memoryIsZeroAndFreedWithItsArena() throws IOException {
        MemorySegment memory;
        try (Arena arena = Arena.ofShared()) {
            memory = PageMemory.allocate(BYTES, arena);
            assertEquals(BYTES, memory.byteSize());
            assertEquals(-1, memory.mismatch(arena.allocate(BYTES)));
            memory.set(ValueLayout.JAVA_LONG, BYTES - Long.BYTES, 7);
            assertTrue(isMapped(memory.address()));
        }
        assertTrue(!isMapped(memory.address()), "it is mapped still");
    }

    @Test
    void zeroBytesAreValid() {
        try (Arena arena = Arena.ofConfined()) {
            assertEquals(0, PageMemory.allocate(0, arena).byteSize());
        }
    }

    @Test
    void tooMuchMemoryIsAnError() {
        try (Arena arena = Arena.ofConfined()) {
            assertTrue(assertThrows(OutOfMemoryError.class, () -> PageMemory.allocate(1L << 62, arena)).getMessage()
                    .contains("4611686018427387904 bytes"));
        }
    }
}
