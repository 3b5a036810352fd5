package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.MemoryLayout.PathElement.sequenceElement;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.ffi.device.ncclRecvMem;
import org.millrace.ffi.device.ncclRecvMem_v28;
import org.millrace.ffi.device.ncclSendMem;

/**
 * The result of each accessor is compared with the bytes of its field. The generated layout gives the position of the
 * field.
 */
@ParameterizedClass
@EnumSource(KernelLayout.class)
class ControlMemoryTest {
    private static final long INT_EDGE = 1L << 31;
    private static final long UNSIGNED_EDGE = 1L << 32;

    private final MemorySegment sendBytes = Arena.ofAuto().allocate(SendMem.BYTES, SendMem.ALIGNMENT);
    private final MemorySegment recvBytes = Arena.ofAuto().allocate(RecvMem.BYTES, RecvMem.ALIGNMENT);
    private final SendMem sendMem = SendMem.of(sendBytes);
    private final KernelLayout fifo;
    private final RecvMem recvMem;

    ControlMemoryTest(KernelLayout fifo) {
        this.fifo = fifo;
        recvMem = RecvMem.of(recvBytes, fifo);
    }

    @Test
    void offsetsAreTheGeneratedLayouts() {
        assertEquals(4096, SendMem.BYTES);
        assertEquals(4096, RecvMem.BYTES);
        assertEquals(ncclSendMem.head$offset(), SendMem.HEAD_OFFSET);
        assertEquals(ncclRecvMem.tail$offset(), RecvMem.TAIL_OFFSET);
    }

    @ParameterizedTest
    @ValueSource(
            longs = {0, INT_EDGE - 1, INT_EDGE, UNSIGNED_EDGE - 1, UNSIGNED_EDGE, Long.MAX_VALUE, Long.MIN_VALUE, -1})
    void countersKeepAllSixtyFourBits(long step) {
        sendMem.headRelease(step);
        recvMem.tailRelease(~step);
        assertEquals(step, sendBytes.get(ValueLayout.JAVA_LONG, ncclSendMem.head$offset()));
        assertEquals(~step, recvBytes.get(ValueLayout.JAVA_LONG, ncclRecvMem.tail$offset()));
        assertEquals(step, sendMem.headAcquire());
        assertEquals(step, sendMem.headPlain());
        assertEquals(~step, recvMem.tailAcquire());
    }

    @ParameterizedTest
    @ValueSource(longs = {RecvMem.EMPTY, 0, INT_EDGE - 1, INT_EDGE, UNSIGNED_EDGE, Long.MAX_VALUE})
    void sizesKeepAllSixtyFourBits(long size) {
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            recvMem.sizeRelease(slot, size);
            assertEquals(size, recvBytes.get(ValueLayout.JAVA_LONG, entryOffset(slot, "size")));
            assertEquals(size, recvMem.sizeAcquire(slot));
            recvMem.sizePlain(slot, size - 1);
            assertEquals(size - 1, recvMem.sizePlain(slot));
        }
    }

    @Test
    void everySlotsFieldsAreItsOwn() {
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            recvMem.modePlain(slot, 100 + slot);
            recvMem.offsetPlain(slot, Integer.MAX_VALUE - slot);
            recvMem.sizePlain(slot, 300 + slot);
            recvMem.ptrPlain(slot, Long.MIN_VALUE + slot);
        }
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            assertEquals(100 + slot, recvMem.modePlain(slot));
            assertEquals(100 + slot, recvBytes.get(ValueLayout.JAVA_INT, entryOffset(slot, "mode")));
            assertEquals(Integer.MAX_VALUE - slot, recvMem.offsetPlain(slot));
            long at = entryOffset(slot, "offset");
            assertEquals(Integer.MAX_VALUE - slot, fifo != KernelLayout.V31 ? recvBytes.get(ValueLayout.JAVA_INT, at)
                    : recvBytes.get(ValueLayout.JAVA_LONG, at));
            assertEquals(300 + slot, recvMem.sizeAcquire(slot));
            assertEquals(Long.MIN_VALUE + slot, recvMem.ptrPlain(slot));
            assertEquals(Long.MIN_VALUE + slot, recvBytes.get(ValueLayout.JAVA_LONG, entryOffset(slot, "ptr")));
        }
        assertEquals(0, recvMem.tailAcquire());
    }

    @Test
    void ourOwnMemoryIsOfTheNewestLayout() {
        RecvMem.of(recvBytes).sizePlain(7, 5);
        assertEquals(5, RecvMem.of(recvBytes, KernelLayout.V31).sizePlain(7));
    }

    @ParameterizedTest
    @CsvSource({"22809, V28", "23007, V28", "23100, V28", "23102, V31", "23206, V31", "23299, V31", "23301, ",
            "30000, "})
    void releases(int version, KernelLayout expected) {
        assertEquals(expected, KernelLayout.ofRelease(version));
    }

    @ParameterizedTest
    @CsvSource({"0, ", "22105, ", "22707, RCCL", "22803, RCCL", "23004, RCCL", "23099, RCCL", "23102, "})
    void releasesOfRccl(int version, KernelLayout expected) {
        assertEquals(expected, KernelLayout.ofRccl(version));
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 8, Integer.MIN_VALUE})
    void slotsOutsideTheFifoAreRefused(int slot) {
        assertThrows(IndexOutOfBoundsException.class, () -> recvMem.sizeAcquire(slot));
        assertThrows(IndexOutOfBoundsException.class, () -> recvMem.ptrPlain(slot, 1));
    }

    @Test
    void anotherSizeIsRefused() {
        MemorySegment longer = Arena.ofAuto().allocate(SendMem.BYTES + 8, 8);
        Exception refused = assertThrows(IllegalArgumentException.class, () -> SendMem.of(longer));
        assertTrue(refused.getMessage().contains("4104"), refused.getMessage());
        assertThrows(IllegalArgumentException.class, () -> RecvMem.of(recvBytes.asSlice(0, RecvMem.BYTES - 8)));
    }

    @Test
    void misalignedMemoryIsRefused() {
        MemorySegment roomy = Arena.ofAuto().allocate(SendMem.BYTES + 8, 8);
        Exception refused =
                assertThrows(IllegalArgumentException.class, () -> SendMem.of(roomy.asSlice(4, SendMem.BYTES)));
        assertTrue(refused.getMessage().contains("aligned to 8"), refused.getMessage());
        MemorySegment bytes = MemorySegment.ofArray(new byte[(int) SendMem.BYTES]);
        assertThrows(IllegalArgumentException.class, () -> SendMem.of(bytes));
    }

    /** A Java array is refused as memory, because the accessors use addresses and an array has no fixed address. */
    @Test
    void memoryOfJavasHeapIsRefused() {
        MemorySegment array = MemorySegment.ofArray(new long[(int) SendMem.BYTES / 8]);
        Exception refused = assertThrows(IllegalArgumentException.class, () -> SendMem.of(array));
        assertTrue(refused.getMessage().contains("native memory"), refused.getMessage());
    }

    private long entryOffset(int slot, String field) {
        return (fifo == KernelLayout.V31 ? ncclRecvMem.layout() : ncclRecvMem_v28.layout())
                .byteOffset(groupElement("connFifo"), sequenceElement(slot), groupElement(field))
                - (fifo == KernelLayout.RCCL ? 64 : 0);
    }
}
