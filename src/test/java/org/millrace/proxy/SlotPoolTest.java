package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.ConnectionLayout;

/** Shared slots: none is granted twice, all are returned, and no connection waits forever. */
class SlotPoolTest {

    private static final int SLOT = 64;

    private static SlotPool pool(int connections) {
        return new SlotPool(MemoryFrames.region(Arena.ofAuto().allocate((long) SLOT * SlotPool.slots(connections))),
                SLOT, connections);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 7, 15, 16, 17, 40})
    void noSlotIsGrantedTwiceAndAllComeBack(int connections) {
        Random random = new Random(connections);
        SlotPool pool = pool(connections);
        List<SlotPool.Share> shares = new ArrayList<>();
        List<Queue<Integer>> held = new ArrayList<>();
        Set<Integer> granted = new HashSet<>();
        for (int i = 0; i < connections; i++) {
            shares.add(pool.attach());
            held.add(new ArrayDeque<>());
        }
        for (int turn = 0; turn < 100_000; turn++) {
            int who = random.nextInt(connections);
            if (random.nextInt(3) > 0) {
                int offset = shares.get(who).take();
                if (offset == SlotPool.NONE) {
                    assertTrue(!held.get(who).isEmpty(),
                            "a connection without any slot had to wait, seed " + connections);
                } else {
                    assertTrue(granted.add(offset), "granted twice: " + offset + ", seed " + connections);
                    held.get(who).add(offset);
                    assertTrue(held.get(who).size() <= ConnectionLayout.SLOTS);
                }
            } else if (!held.get(who).isEmpty()) {
                int offset = held.get(who).remove();
                granted.remove(offset);
                shares.get(who).give(offset);
            }
            assertEquals(SlotPool.slots(connections) - granted.size(), pool.freeSlots());
        }
        for (int who = 0; who < connections; who++) {
            held.get(who).forEach(shares.get(who)::give);
        }
        assertEquals(SlotPool.slots(connections), pool.freeSlots());
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8, 12, 63})
    void oneConnectionAloneLeavesAPlaceForThoseThatMayCome(int connections) {
        SlotPool pool = pool(connections);
        SlotPool.Share greedy = pool.attach();
        int taken = 0;
        while (greedy.take() != SlotPool.NONE) {
            taken++;
        }
        assertEquals(ConnectionLayout.SLOTS, taken);
        for (int i = 1; i < connections; i++) {
            assertNotEquals(SlotPool.NONE, pool.attach().take());
        }
        assertThrows(IllegalStateException.class, pool::attach);
    }

    /** As in NCCL, each of n active connections gets 16/n slots, rounded down, but at least 1 and at most 8. */
    @ParameterizedTest
    @CsvSource({"1, 8", "2, 8", "3, 5", "4, 4", "5, 3", "8, 2", "16, 1", "40, 1"})
    void aConnectionsDepthIs16DividedByThoseUnderWay(int holders, int depth) {
        SlotPool pool = pool(63);
        List<SlotPool.Share> shares = new ArrayList<>();
        for (int i = 0; i < holders; i++) {
            shares.add(pool.attach());
            assertNotEquals(SlotPool.NONE, shares.get(i).take());
        }
        for (SlotPool.Share share : shares) {
            int held = 1;
            while (share.take() != SlotPool.NONE) {
                held++;
            }
            assertEquals(depth, held);
        }
    }

    @Test
    void aSlotIsGivenBackByItsHolderOnly() {
        SlotPool pool = pool(2);
        SlotPool.Share one = pool.attach();
        SlotPool.Share other = pool.attach();
        int offset = one.take();
        assertThrows(IllegalStateException.class, () -> other.give(offset));
        one.give(offset);
        assertThrows(IllegalStateException.class, () -> one.give(offset));
    }

    @Test
    void memoryOfAnotherSizeIsRefused() {
        assertThrows(IllegalArgumentException.class,
                () -> new SlotPool(MemoryFrames.region(Arena.ofAuto().allocate(SLOT)), SLOT, 1));
    }
}
