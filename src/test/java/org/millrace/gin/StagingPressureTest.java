package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;

/**
 * More operations are in flight than a device has staging buffers. A frame is sent only when the receiver has a buffer
 * for it. Two frames that wait for each other's buffers would be a deadlock.
 */
class StagingPressureTest {

    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;
    private static final int CHUNK = 64;
    private static final int OPERATIONS = 48;
    private static final int SIGNAL = 1;
    /** Layout of every window: cells for VA signals, then the sources of puts and gets, then the targets. */
    private static final int SOURCE = 64;
    private static final int TARGET = SOURCE + OPERATIONS * CHUNK;
    private static final int WINDOW = TARGET + OPERATIONS * CHUNK;
    /** Maximum number of passes of each agent. An operation needs only a few passes. */
    private static final int MAX_PASSES = 100 * OPERATIONS;

    private final MemorySegment[] memory = new MemorySegment[2];
    private final StagedDevice[] staged = new StagedDevice[2];
    private final GinPair.Context[] contexts = new GinPair.Context[2];

    @ParameterizedTest
    @ValueSource(ints = {3, 4, 7})
    void bothSidesPutMoreThanTheBuffersHold(int buffers) {
        try (GinPair pair = pair(buffers)) {
            for (int rank = 0; rank < 2; rank++) {
                for (int i = 0; i < OPERATIONS; i++) {
                    put(rank, i, GinOp.SIGNAL_INC);
                }
            }
            run(pair);
            for (int rank = 0; rank < 2; rank++) {
                assertEquals(OPERATIONS, contexts[rank].signals.acquire(SIGNAL), "signals at rank " + rank);
                assertArrived(rank);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {3, 4, 7})
    void bothSidesGetMoreThanTheBuffersHold(int buffers) {
        try (GinPair pair = pair(buffers)) {
            for (int rank = 0; rank < 2; rank++) {
                for (int i = 0; i < OPERATIONS; i++) {
                    FORMAT.begin(contexts[rank].words, GinOp.GET, CHUNK);
                    FORMAT.source(contexts[rank].words, 1, SOURCE + i * CHUNK);
                    FORMAT.target(contexts[rank].words, 1, TARGET + i * CHUNK);
                    contexts[rank].post(1 - rank);
                }
            }
            run(pair);
            assertArrived(0);
            assertArrived(1);
        }
    }

    /** Puts that follow a VA signal hold their buffers until the signal is added. The addition also needs a buffer. */
    @Test
    void signalsInWindowsAreAddedBeforePutsThatTookAllBuffers() {
        try (GinPair pair = pair(4)) {
            for (int i = 0; i < OPERATIONS; i++) {
                if (i % 8 == 0) {
                    FORMAT.begin(contexts[0].words, GinOp.VA_SIGNAL | GinOp.SIGNAL_ADD, 0);
                    FORMAT.source(contexts[0].words, 1, 8);
                    FORMAT.completion(contexts[0].words, 0, 0, 5);
                    contexts[0].post(1);
                }
                put(0, i, 0);
            }
            run(pair);
            assertEquals(OPERATIONS / 8 * 5, memory[1].get(ValueLayout.JAVA_LONG, 8));
            assertArrived(1);
        }
    }

    private GinPair pair(int buffers) {
        GinPair pair = new GinPair(new GinOptions(CHUNK, 16, Duration.ofSeconds(5)), null);
        pair.serve();
        for (int rank = 0; rank < 2; rank++) {
            memory[rank] = pair.arena.allocate(WINDOW, 64);
            for (int i = 0; i < OPERATIONS; i++) {
                memory[rank].asSlice(SOURCE + i * CHUNK, CHUNK).fill(content(rank, i));
            }
            staged[rank] = new StagedDevice(pair.arena.allocate((long) buffers * CHUNK, 64), buffers, null);
            pair.communicators[rank].register(new StagedMemory(memory[rank], staged[rank]));
            contexts[rank] = new GinPair.Context(pair.arena, 0, FORMAT, 2 * Integer.highestOneBit(OPERATIONS), 4, -7);
            pair.add(rank, contexts[rank]);
        }
        return pair;
    }

    private static byte content(int rank, int operation) {
        return (byte) (1 + 101 * rank + operation);
    }

    private void put(int rank, int number, int signal) {
        FORMAT.begin(contexts[rank].words, GinOp.PUT | signal, CHUNK);
        FORMAT.source(contexts[rank].words, 1, SOURCE + number * CHUNK);
        FORMAT.target(contexts[rank].words, 1, TARGET + number * CHUNK);
        FORMAT.completion(contexts[rank].words, 0, SIGNAL, 1);
        contexts[rank].post(1 - rank);
    }

    private void run(GinPair pair) {
        int pass = 0;
        while (!(pair.communicators[0].isDrained() && pair.communicators[1].isDrained())) {
            assertTrue(pass++ < MAX_PASSES, () -> "it stands still: rank 0 has completed " + completed(0)
                    + " operations, rank 1 " + completed(1));
            pair.work();
            pair.throwIfFailed();
        }
        assertTrue(staged[0].refusals + staged[1].refusals > 0,
                "there were buffers enough, so that nothing was tested");
    }

    private int completed(int rank) {
        return contexts[rank].cis.acquire(1 - rank) + 7;
    }

    private void assertArrived(int rank) {
        for (int i = 0; i < OPERATIONS; i++) {
            byte[] expected = new byte[CHUNK];
            Arrays.fill(expected, content(1 - rank, i));
            assertArrayEquals(expected, memory[rank].asSlice(TARGET + i * CHUNK, CHUNK).toArray(ValueLayout.JAVA_BYTE),
                    "operation " + i + " at rank " + rank);
        }
    }
}
