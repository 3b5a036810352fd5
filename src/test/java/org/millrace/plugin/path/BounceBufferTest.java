package org.millrace.plugin.path;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.millrace.MillraceException;
import org.millrace.net.MemoryRegion;

class BounceBufferTest {

    private static final long SLOT = 64 * 1024;

    private static UnpackDevice.BounceBuffer buffer(Arena arena, long bytes) {
        MemorySegment memory = arena.allocate(bytes, 4096);
        return new UnpackDevice.BounceBuffer(new MemoryRegion() {
            @Override
            public MemorySegment segment() {
                return memory;
            }

            @Override
            public void close() {
                // The memory belongs to the test's arena.
            }
        });
    }

    @Test
    void eachConnectionHasPagesOfItsOwnAndWhatIsGivenBackIsTakenAgain() {
        try (Arena arena = Arena.ofConfined()) {
            UnpackDevice.BounceBuffer buffer = buffer(arena, 3 * 8 * SLOT);
            var first = buffer.allocate(SLOT);
            var second = buffer.allocate(SLOT);
            var third = buffer.allocate(SLOT);
            assertEquals(first.first() + first.count(), second.first());
            assertEquals(second.first() + second.count(), third.first());
            MillraceException full = assertThrows(MillraceException.class, () -> buffer.allocate(4096));
            assertTrue(full.getMessage().contains("MILLRACE_UNPACK_MIB"), full.getMessage());
            buffer.free(second);
            var smaller = buffer.allocate(SLOT / 2);
            assertEquals(second.first(), smaller.first());
            assertThrows(MillraceException.class, () -> buffer.allocate(SLOT));
            assertEquals(second.first() + smaller.count(), buffer.allocate(SLOT / 2).first());
        }
    }
}
