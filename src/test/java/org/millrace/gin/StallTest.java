package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;

/** The rank whose operation has stalled reports the stall. Its idle peer reports nothing. */
class StallTest {

    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;
    private static final int CHUNK = 64;
    private static final int BUFFERS = 8;
    private static final int PASSES = 100_000;

    @ParameterizedTest
    @CsvSource({
            "0, 'rank 0: nothing has moved for 1 ms, and the oldest operation in flight is rank 0 -> rank 1, context "
                    + "0, descriptor 0'",
            "1, 'rank 1: nothing has moved for 1 ms, and the oldest operation in flight is bytes or signals that "
                    + "rank 0 has sent'"})
    void copiesThatDoNotEndAreNamed(int where, String expected) {
        try (GinPair pair = new GinPair(new GinOptions(CHUNK, 8, Duration.ofMillis(1)), null)) {
            pair.serve();
            StagedDevice[] devices = new StagedDevice[2];
            GinPair.Context[] contexts = new GinPair.Context[2];
            for (int rank = 0; rank < 2; rank++) {
                devices[rank] = new StagedDevice(pair.arena.allocate((long) BUFFERS * CHUNK, 64), BUFFERS, null);
                pair.communicators[rank].register(new StagedMemory(pair.arena.allocate(2 * CHUNK, 64), devices[rank]));
                contexts[rank] = new GinPair.Context(pair.arena, 0, FORMAT, 8, 4, 0);
                pair.add(rank, contexts[rank]);
            }
            work(pair, PASSES);
            assertEquals(List.of(), pair.stalls, "nothing is under way");
            devices[where].holding = true;
            FORMAT.begin(contexts[0].words, GinOp.PUT | GinOp.SIGNAL_ADD, CHUNK);
            FORMAT.source(contexts[0].words, 1, 0);
            FORMAT.target(contexts[0].words, 1, CHUNK);
            FORMAT.completion(contexts[0].words, 0, 1, 7);
            contexts[0].post(1);
            for (long pass = 0; pair.stalls.isEmpty() && pass < 1000; pass++) {
                work(pair, PASSES);
            }
            assertTrue(pair.stalls.getFirst().startsWith(expected), pair.stalls.toString());
            devices[where].finishHeld();
            devices[where].holding = false;
            work(pair, PASSES);
            assertEquals(7, contexts[1].signals.acquire(1));
        }
    }

    private static void work(GinPair pair, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            pair.work();
        }
        pair.throwIfFailed();
    }
}
