package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.proxy.spi.ProxyException;

class PieceCheckTest {

    private static final int BOUNCE = 1 << 16;

    @ParameterizedTest
    @CsvSource({"65000, 537, 100, beyond the bounce buffer", "-1, 2, 100, beyond the bounce buffer",
            "0, -1, 100, beyond the bounce buffer", "0, 901, 100, beyond the slice", "0, 1, -1, beyond the slice",
            "0, 1, 1000, beyond the slice", "0, 10, 0, overlaps", "0, 10, 99, overlaps", "0, 0, 100, length is 0",
            "0, 10, 101, a gap"})
    void aPieceThatAKernelMustNotFollowIsNamedAndNothingIsPublished(int source, int length, long target, String why) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(UnpackMeta.BYTES, 16);
            MemorySegment handle = arena.allocate(UnpackHandle.BYTES, 16);
            UnpackHandle.of(handle).set(memory.address(), 0, -1);
            SliceLists lists = new SliceLists(memory, handle, BOUNCE, 0);
            lists.begin(0, 1000);
            lists.piece(4096, 100, 0);
            ProxyException refused = assertThrows(ProxyException.class, () -> lists.piece(source, length, target));
            assertTrue(refused.getMessage().contains(why), refused.getMessage());
            assertTrue(refused.getMessage().startsWith("piece 1, "), refused.getMessage());
            assertThrows(ProxyException.class, lists::publish);
            assertEquals(0, UnpackMeta.of(memory).countAcquire(0));
        }
    }

    @Test
    void aListHas2048PiecesAndNotOneMore() {
        SliceLists.PieceCheck check = new SliceLists.PieceCheck(BOUNCE);
        check.begin(3000);
        for (int i = 0; i < UnpackMeta.MAX_PIECES; i++) {
            assertEquals(i, check.next(i, 1, i));
        }
        assertTrue(assertThrows(ProxyException.class, () -> check.next(0, 1, UnpackMeta.MAX_PIECES)).getMessage()
                .contains("2048 pieces"));
    }

    @Test
    void aSliceOfMoreThan4MiBIsRefused() {
        SliceLists.PieceCheck check = new SliceLists.PieceCheck(BOUNCE);
        check.begin(4 << 20);
        assertThrows(ProxyException.class, () -> check.begin((4 << 20) + 1));
    }

    @Test
    void aKernelThatIsAheadOfTheCountIsNoticed() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(UnpackHandle.BYTES, 16);
            SliceLists lists = new SliceLists(arena.allocate(UnpackMeta.BYTES, 16), handle, BOUNCE, 0);
            UnpackHandle.of(handle).headRelease(4);
            lists.begin(5, 1);
            assertTrue(assertThrows(ProxyException.class, () -> lists.begin(4, 1)).getMessage().contains("slice 4"));
        }
    }
}
