package org.millrace.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** The addresses in this class are not mapped. An access that the code does not refuse would end the JVM. */
class DeviceSegmentsTest {

    private final MemorySegment device = DeviceSegments.of(0x700000000000L, 4096);

    @Test
    void haveAddressSizeAndSlices() {
        assertEquals(0x700000000000L, device.address());
        assertEquals(4096, device.byteSize());
        assertEquals(0x700000000010L, device.asSlice(16, 32).address());
        assertThrows(IndexOutOfBoundsException.class, () -> device.asSlice(4000, 97));
        assertTrue(DeviceSegments.isDevice(device.asSlice(16)));
        assertFalse(DeviceSegments.isDevice(MemorySegment.ofAddress(0x1000)));
        assertFalse(DeviceSegments.isDevice(MemorySegment.ofArray(new byte[8])));
    }

    @Test
    void cannotBeReadWrittenCopiedOrFilled() throws InterruptedException {
        assertThrows(WrongThreadException.class, () -> device.get(ValueLayout.JAVA_BYTE, 0));
        assertThrows(WrongThreadException.class, () -> device.set(ValueLayout.JAVA_LONG, 8, 1));
        assertThrows(WrongThreadException.class, () -> device.fill((byte) 0));
        assertThrows(WrongThreadException.class,
                () -> device.asSlice(0, 8).copyFrom(MemorySegment.ofArray(new byte[8])));
        assertThrows(WrongThreadException.class,
                () -> MemorySegment.ofArray(new byte[8]).copyFrom(device.asSlice(0, 8)));
        assertThrows(WrongThreadException.class, () -> device.mismatch(MemorySegment.ofArray(new byte[4096])));
        assertThrows(WrongThreadException.class, () -> ValueLayout.JAVA_LONG.varHandle().getAcquire(device, 0L));
        AtomicReference<Throwable> elsewhere = new AtomicReference<>();
        Thread other = new Thread(() -> elsewhere
                .set(assertThrows(WrongThreadException.class, () -> device.get(ValueLayout.JAVA_BYTE, 0))));
        other.start();
        other.join();
        assertTrue(elsewhere.get() instanceof WrongThreadException);
    }

    @Test
    void becomeBarePointersOnlyIfTheyAreLargeEnoughAndAlive() {
        assertEquals(MemorySegment.ofAddress(0x700000000000L), DeviceSegments.pointer("operand", device, 4096));
        String small =
                assertThrows(IllegalArgumentException.class, () -> DeviceSegments.pointer("operand", device, 4097))
                        .getMessage();
        assertEquals("operand has 4096 bytes, but 4097 are needed", small);
        assertThrows(IllegalArgumentException.class,
                () -> DeviceSegments.pointer("operand", MemorySegment.ofArray(new byte[8]), 8));
        Arena arena = Arena.ofConfined();
        MemorySegment closed = arena.allocate(8);
        arena.close();
        assertThrows(IllegalArgumentException.class, () -> DeviceSegments.pointer("operand", closed, 8));
    }
}
