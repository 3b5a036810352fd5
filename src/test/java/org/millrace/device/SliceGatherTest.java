package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;

/** Lists of data ranges with lengths, offsets and an order that Millrace's proxies would not write. */
class SliceGatherTest {

    private static final int BOUNCE = 1 << 18;
    private static final int SLOT = 1 << 17;
    private static final int SLOT_AT = 64;

    private final Arena arena = Arena.ofAuto();
    private final MemorySegment metaMemory = arena.allocate(UnpackMeta.BYTES, 16);
    private final MemorySegment handleMemory = arena.allocate(UnpackHandle.BYTES, 16);
    private final MemorySegment bounce = arena.allocate(BOUNCE, 4096);
    private final MemorySegment slots = arena.allocate(SLOT_AT + SLOT + 64, 4096);
    private final UnpackMeta meta = UnpackMeta.of(metaMemory);

    private ReceivePort.SliceGather gather(long head) {
        UnpackHandle.of(handleMemory).set(metaMemory.address(), bounce.address(), head);
        return new ReceivePort.SliceGather(new UnpackHandle.UnpackMemory(metaMemory, handleMemory, bounce, 0));
    }

    private void fill(Random random) {
        for (int i = 0; i < BOUNCE; i++) {
            bounce.set(ValueLayout.JAVA_BYTE, i, (byte) random.nextInt());
        }
    }

    /**
     * The data of each slice is cut into random ranges, which lie anywhere in the bounce buffer and are listed in any
     * order. The number of slices exceeds the number of lists in memory, so the lists are used again. The counters
     * wrap.
     */
    @ParameterizedTest
    @ValueSource(longs = {-1, (1L << 31) - 9, (1L << 32) - 9, Long.MAX_VALUE - 9, -9})
    void randomListsAreFollowed(long firstHead) {
        long seed = 31 * firstHead;
        Random random = new Random(seed);
        fill(random);
        ReceivePort.SliceGather gather = gather(firstHead);
        long head = firstHead;
        for (int slice = 0; slice < 40; slice++) {
            head++;
            int bytes = random.nextInt(4) == 0 ? 0 : random.nextInt(SLOT + 1);
            byte[] expected = new byte[bytes];
            list((int) head & 15, bytes, expected, random);
            slots.fill((byte) 0x77);
            gather.next(slots, SLOT_AT, bytes);
            String where = "seed " + seed + ", slice " + slice + " of " + bytes + " bytes";
            assertEquals(-1, MemorySegment.ofArray(expected).mismatch(slots.asSlice(SLOT_AT, bytes)), where);
            assertEquals(0x77, slots.get(ValueLayout.JAVA_BYTE, SLOT_AT - 1), where);
            assertEquals(0x77, slots.get(ValueLayout.JAVA_BYTE, SLOT_AT + bytes), where);
        }
        gather.leave();
        assertEquals(head, UnpackHandle.of(handleMemory).headAcquire());
    }

    private void list(int index, int bytes, byte[] expected, Random random) {
        List<int[]> pieces = new ArrayList<>();
        for (int at = 0; at < bytes && pieces.size() < UnpackMeta.MAX_PIECES;) {
            boolean last = pieces.size() == UnpackMeta.MAX_PIECES - 1;
            int length =
                    last ? bytes - at : Math.min(bytes - at, random.nextBoolean() ? 4096 : 1 + random.nextInt(300));
            int source = random.nextInt(BOUNCE - length + 1);
            source = random.nextBoolean() ? source & -16 : source;
            pieces.add(new int[] {source, length, at});
            MemorySegment.copy(bounce, ValueLayout.JAVA_BYTE, source, expected, at, length);
            at += length;
        }
        Collections.shuffle(pieces, random);
        for (int i = 0; i < pieces.size(); i++) {
            meta.piece(index, i, pieces.get(i)[0], pieces.get(i)[1], pieces.get(i)[2]);
        }
        meta.countRelease(index, pieces.size());
    }

    @Test
    void everyPairOfAlignmentsAndEveryTailIsCopied() {
        fill(new Random(5));
        ReceivePort.SliceGather gather = gather(-1);
        int index = 0;
        for (int source = 0; source < 16; source++) {
            for (int target = 0; target < 16; target++) {
                for (int length : new int[] {1, 7, 15, 16, 17, 31, 32, 47, 4096}) {
                    meta.piece(index, 0, source, length, target);
                    meta.countRelease(index, 1);
                    slots.fill((byte) 0);
                    gather.next(slots, SLOT_AT, length);
                    assertEquals(-1, bounce.asSlice(source, length).mismatch(slots.asSlice(SLOT_AT + target, length)),
                            source + " to " + target + ", " + length);
                    assertEquals(0, slots.get(ValueLayout.JAVA_BYTE, SLOT_AT + target + length));
                    index = index + 1 & 15;
                }
            }
        }
    }

    @Test
    void slotsMustHaveTheAlignmentThatAGpuRequires() {
        ReceivePort.SliceGather gather = gather(-1);
        assertThrows(IllegalArgumentException.class, () -> gather.next(slots, SLOT_AT + 8, 1));
    }
}
