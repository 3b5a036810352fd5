package org.millrace.cuda.driver;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** A batch sorts waiting copies into consecutive levels. The copies of one level may be made in any order. */
class CopyBatchTest {

    private static final int BYTES = 64;

    private final CopyBatch batch = new CopyBatch();

    /** Sorts the batch. Returns the target addresses of the copies of each level. */
    private List<List<Long>> levels() {
        List<List<Long>> all = new ArrayList<>();
        int levels = batch.sort();
        for (int level = 0; level < levels; level++) {
            List<Long> targets = new ArrayList<>();
            for (int place = batch.start(level); place < batch.end(level); place++) {
                targets.add(batch.to(place));
            }
            all.add(targets);
        }
        return all;
    }

    @Test
    void strictCopiesOfOneSequenceFollowEachOther() {
        batch.add(1, 0, BYTES, CopyOrder.strict(7), false);
        batch.add(2, 0, BYTES, CopyOrder.strict(7), false);
        batch.add(3, 0, BYTES, CopyOrder.strict(8), false);
        batch.add(4, 0, BYTES, CopyOrder.FREE, false);
        batch.add(5, 0, BYTES, CopyOrder.strict(8), false);
        batch.add(6, 0, BYTES, CopyOrder.strict(7), false);
        assertEquals(List.of(List.of(1L, 3L, 4L), List.of(2L, 5L), List.of(6L)), levels());
    }

    @Test
    void aStrictCopyFollowsTheRelaxedOnesOfItsSequenceButNotViceVersa() {
        batch.add(1000, 0, BYTES, CopyOrder.relaxed(0), false);
        batch.add(2000, 0, BYTES, CopyOrder.relaxed(0), false);
        batch.add(3000, 0, BYTES, CopyOrder.strict(0), false);
        batch.add(4000, 0, BYTES, CopyOrder.relaxed(0), false);
        assertEquals(List.of(List.of(1000L, 2000L, 4000L), List.of(3000L)), levels());
    }

    @Test
    void aCopyInTurnFollowsAllEarlierCopiesAndPrecedesAllLaterOnes() {
        batch.add(1, 0, BYTES, CopyOrder.FREE, false);
        batch.add(2, 0, BYTES, CopyOrder.IN_TURN, false);
        batch.add(3, 0, BYTES, CopyOrder.FREE, false);
        batch.add(4, 0, BYTES, CopyOrder.IN_TURN, false);
        batch.add(5, 0, BYTES, CopyOrder.strict(1), false);
        assertEquals(List.of(List.of(1L), List.of(2L), List.of(3L), List.of(4L), List.of(5L)), levels());
    }

    @Test
    void relaxedCopiesThatContinueTheLastOneAreMerged() {
        assertTrue(batch.add(0, 1000, BYTES, CopyOrder.relaxed(3), false));
        assertTrue(batch.add(500, 9000, BYTES, CopyOrder.relaxed(4), false));
        assertFalse(batch.add(BYTES, 1000 + BYTES, 8, CopyOrder.relaxed(3), false));
        assertTrue(batch.add(BYTES + 8, 1000, BYTES, CopyOrder.relaxed(3), false), "the source is elsewhere");
        assertTrue(batch.add(500 + BYTES, 9000 + BYTES, BYTES, CopyOrder.strict(4), false),
                "it must not be seen earlier");
        assertTrue(batch.add(500 + 2 * BYTES, 9000 + 2 * BYTES, BYTES, CopyOrder.strict(4), false));
        batch.sort();
        assertEquals(BYTES + 8, batch.bytes(0));
        batch.clear();
        assertTrue(batch.isEmpty());
        assertTrue(batch.add(BYTES + 8, 1000 + BYTES + 8, 8, CopyOrder.relaxed(3), false),
                "what it would join has been begun");
        assertEquals(List.of(List.of(BYTES + 8L)), levels());
    }

    /**
     * The stream stores an 8-byte number as a whole. If a copy of 4 bytes were merged with that number, the stream
     * would store the 12 bytes as three 4-byte numbers.
     */
    @Test
    void aCopyFromTheHostOnlyGrowsByNumbersOfItsOwnLength() {
        assertTrue(batch.add(0, 1000, 8, CopyOrder.relaxed(3), true));
        assertTrue(batch.add(8, 1008, 4, CopyOrder.relaxed(3), true));
        assertFalse(batch.add(12, 1012, 4, CopyOrder.relaxed(3), true), "both are numbers of 4 bytes");
        assertFalse(batch.add(16, 1016, 16, CopyOrder.relaxed(3), true), "and are now as long as one of 8 bytes");
        assertTrue(batch.add(32, 1032, 3, CopyOrder.relaxed(3), true));
        assertFalse(batch.add(35, 1035, 8, CopyOrder.relaxed(3), true), "no number can be at this address");
        batch.sort();
        assertEquals(List.of(8L, 24L, 11L), List.of(batch.bytes(0), batch.bytes(1), batch.bytes(2)));
    }

    @Test
    void aRelaxedCopyIsNotMergedAcrossACopyInTurn() {
        batch.add(0, 1000, BYTES, CopyOrder.relaxed(3), false);
        batch.add(900, 5000, BYTES, CopyOrder.IN_TURN, false);
        assertTrue(batch.add(BYTES, 1000 + BYTES, BYTES, CopyOrder.relaxed(3), false));
        assertEquals(List.of(List.of(0L), List.of(900L), List.of((long) BYTES)), levels());
    }

    @Test
    void copiesOfOneLengthAndStepAreRows() {
        for (int order : new int[] {CopyOrder.relaxed(3), CopyOrder.relaxed(5)}) {
            assertTrue(batch.add(0, 10_000, BYTES, order, true));
            assertFalse(batch.add(100, 10_200, BYTES, order, true));
            assertFalse(batch.add(200, 10_400, BYTES, order, true));
            assertTrue(batch.add(300, 10_600, BYTES - 1, order, true), "another length");
            assertTrue(batch.add(400, 10_800, BYTES, order, true), "another length than the last");
            assertTrue(batch.add(400 + BYTES - 1, 11_000, BYTES, order, true), "rows overlap in the target");
            assertTrue(batch.add(1000, 11_000 + BYTES - 1, BYTES, order, true), "rows overlap in the source");
            assertTrue(batch.add(1100, 11_200, BYTES, order, false), "it does not come from the host");
            batch.sort();
            assertEquals(3, batch.rows(0));
            assertEquals(100, batch.targetPitch(0));
            assertEquals(200, batch.sourcePitch(0));
            assertEquals(BYTES, batch.bytes(0));
            assertTrue(batch.isFromHost(0));
            batch.clear();
        }
    }

    @Test
    void rowsAndCopiesAfterThemAreNotExtended() {
        batch.add(0, 0, BYTES, CopyOrder.relaxed(1), false);
        assertFalse(batch.add(100, 200, BYTES, CopyOrder.relaxed(1), false));
        assertTrue(batch.add(100 + BYTES, 200 + BYTES, 8, CopyOrder.relaxed(1), false));
        batch.sort();
        assertEquals(BYTES, batch.bytes(0));
        assertEquals(2, batch.rows(0));
        assertEquals(8, batch.bytes(1));
    }

    @Test
    void strictAndFreeCopiesDoNotBecomeRows() {
        batch.add(5000, 5000, BYTES, CopyOrder.FREE, false);
        assertTrue(batch.add(5100, 5100, BYTES, CopyOrder.FREE, false), "they may lie in several allocations");
        batch.add(0, 0, BYTES, CopyOrder.strict(1), false);
        assertTrue(batch.add(100, 200, BYTES, CopyOrder.strict(1), false));
    }

    @Test
    void theStepBetweenRowsHasALimit() {
        batch.add(0, 0, BYTES, CopyOrder.relaxed(1), false);
        assertTrue(batch.add(1L << 31, 200, BYTES, CopyOrder.relaxed(1), false));
    }

    /**
     * Adjacent relaxed copies may be merged. All bytes reach their targets for all combinations of lengths and gaps.
     */
    @Test
    void mergedCopiesMoveAllBytes() {
        Random random = new Random(0x20b5);
        long merged = 0;
        for (int round = 0; round < 300; round++) {
            byte[] sources = new byte[1 << 16];
            byte[] expected = new byte[1 << 16];
            byte[] made = new byte[1 << 16];
            random.nextBytes(sources);
            int to = 0;
            int from = 0;
            int length = 8;
            int gap = 0;
            for (int i = 0; i < CopyBatch.MAX_COPIES; i++) {
                if (random.nextInt(6) == 0) {
                    length = 1 + random.nextInt(16);
                    gap = random.nextInt(3) * 8;
                }
                merged += batch.add(to, from, length, CopyOrder.relaxed(random.nextInt(10) / 9), true) ? 0 : 1;
                System.arraycopy(sources, from, expected, to, length);
                to += length + gap;
                from += length + random.nextInt(4) / 3;
            }
            int levels = batch.sort();
            assertEquals(1, levels);
            for (int place = batch.start(0); place < batch.end(0); place++) {
                for (int row = 0; row < batch.rows(place); row++) {
                    System.arraycopy(sources, (int) (batch.from(place) + row * batch.sourcePitch(place)), made,
                            (int) (batch.to(place) + row * batch.targetPitch(place)), (int) batch.bytes(place));
                }
            }
            batch.clear();
            assertArrayEquals(expected, made);
        }
        assertTrue(merged > 10_000, merged + " became part of others");
    }

    @Test
    void manyBytesOrManyCopiesFillABatch() {
        batch.add(0, 1 << 20, 1 << 20, CopyOrder.FREE, false);
        assertTrue(batch.isFull());
        batch.clear();
        for (int i = 0; i < CopyBatch.MAX_COPIES; i++) {
            assertFalse(batch.isFull());
            batch.add(i * 16L, 0, 8, CopyOrder.strict(i % 2), false);
        }
        assertTrue(batch.isFull());
        assertEquals(CopyBatch.MAX_COPIES / 2, batch.sort());
    }

    /** Each sequence writes to its own bytes in order. The result is the same for every order within the levels. */
    @Test
    void anyOrderWithinLevelsHasTheSameResult() {
        Random random = new Random(0xba7c4);
        int sequences = 5;
        for (int round = 0; round < 300; round++) {
            byte[] expected = new byte[sequences * BYTES];
            byte[] made = new byte[sequences * BYTES];
            byte[] sources = new byte[4096];
            random.nextBytes(sources);
            int copies = 1 + random.nextInt(CopyBatch.MAX_COPIES);
            for (int i = 0; i < copies; i++) {
                int sequence = random.nextInt(sequences);
                int length = 1 + random.nextInt(16);
                int to = sequence * BYTES + random.nextInt(BYTES - length);
                int from = random.nextInt(sources.length - length);
                batch.add(to, from, length,
                        random.nextInt(20) == 0 ? CopyOrder.IN_TURN : CopyOrder.strict(sequence * 1031), false);
                System.arraycopy(sources, from, expected, to, length);
            }
            int levels = batch.sort();
            for (int level = 0; level < levels; level++) {
                List<Integer> places = new ArrayList<>();
                for (int place = batch.start(level); place < batch.end(level); place++) {
                    places.add(place);
                }
                Collections.shuffle(places, random);
                for (int place : places) {
                    System.arraycopy(sources, (int) batch.from(place), made, (int) batch.to(place),
                            (int) batch.bytes(place));
                }
            }
            batch.clear();
            assertArrayEquals(expected, made);
        }
    }
}
