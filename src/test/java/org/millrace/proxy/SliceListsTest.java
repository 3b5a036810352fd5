package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;

class SliceListsTest {

    /** An aborted kernel also reads lists that were not announced. It ends only if the counts in these lists are 0. */
    @ParameterizedTest
    @ValueSource(longs = {0, Integer.MAX_VALUE - 20L, Long.MAX_VALUE - 20, -20})
    void theEightListsBehindTheLastHaveNoPiecesAndTheSevenBeforeItKeepTheirs(long first) {
        try (Arena arena = Arena.ofConfined()) {
            var memory = arena.allocate(UnpackMeta.BYTES, 16);
            var handle = arena.allocate(UnpackHandle.BYTES, 16);
            UnpackHandle.of(handle).set(memory.address(), 0, first - 1);
            UnpackMeta meta = UnpackMeta.of(memory);
            SliceLists lists = new SliceLists(memory, handle, 1 << 16, first);
            for (int slice = 0; slice < 50; slice++) {
                int pieces = 1 + slice % 5;
                lists.begin(first + slice, 100L * pieces);
                for (int i = 0; i < pieces; i++) {
                    lists.piece(4096 * i, 100, 100L * i);
                }
                lists.publish();
                for (int back = 0; back < 8 && back <= slice; back++) {
                    assertEquals(1 + (slice - back) % 5, meta.countAcquire((int) (first + slice - back) & 15),
                            back + " before slice " + slice);
                }
                for (int ahead = 1; ahead <= 8; ahead++) {
                    assertEquals(0, meta.countAcquire((int) (first + slice + ahead) & 15),
                            ahead + " behind slice " + slice);
                }
            }
        }
    }
}
