package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;
import org.millrace.config.Settings.PayloadCheck;

/** Checksums of puts. If a source changes during the transfer of its frame, both ends report the change. */
class GinCheckTest {

    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;

    @Test
    void aSourceThatChangesDuringAPutIsNamedByBothRanks() {
        GinOptions options = new GinOptions(1 << 20, 8, Duration.ofSeconds(5), PayloadCheck.FAIL);
        try (GinPair pair = new GinPair(options, null)) {
            pair.serve();
            MemorySegment[] memory = new MemorySegment[2];
            GinPair.Context[] contexts = new GinPair.Context[2];
            for (int rank = 0; rank < 2; rank++) {
                memory[rank] = pair.arena.allocate(4096, 64);
                pair.communicators[rank].register(HostWindowMemory.register(new NoNetwork(), memory[rank]));
                contexts[rank] = new GinPair.Context(pair.arena, 0, FORMAT, 16, 4, 0);
                pair.add(rank, contexts[rank]);
            }
            put(contexts[0]);
            while (contexts[0].cis.acquire(1) != contexts[0].pis[1]) {
                pair.work();
            }
            pair.throwIfFailed();
            assertEquals(1, contexts[1].signals.acquire(1), "an unchanged put arrives");

            put(contexts[0]);
            pair.agents[0].doWork();
            memory[0].set(ValueLayout.JAVA_BYTE, 20, (byte) 1);
            for (int pass = 0; pass < 1000; pass++) {
                pair.agents[1].doWork();
            }
            assertFailure(pair, 1, "rank 1 <- rank 0, put of 24 bytes", "differs from the payload that was sent");
            for (int pass = 0; pass < 1000; pass++) {
                pair.agents[0].doWork();
            }
            assertFailure(pair, 0, "rank 0 -> rank 1, put of 24 bytes", "changed in its slot");
        }
    }

    /** Two puts in flight write different bytes to one place. */
    @Test
    void putsToTheSameBytesAreNotReported() {
        GinOptions options = new GinOptions(1 << 20, 8, Duration.ofSeconds(5), PayloadCheck.FAIL);
        try (GinPair pair = new GinPair(options, null)) {
            pair.serve();
            GinPair.Context[] contexts = new GinPair.Context[2];
            MemorySegment source = null;
            for (int rank = 0; rank < 2; rank++) {
                MemorySegment memory = pair.arena.allocate(4096, 64);
                pair.communicators[rank].register(HostWindowMemory.register(new NoNetwork(), memory));
                contexts[rank] = new GinPair.Context(pair.arena, 0, FORMAT, 16, 4, 0);
                pair.add(rank, contexts[rank]);
                source = rank == 0 ? memory : source;
            }
            for (int value = 0; value < 4; value++) {
                source.set(ValueLayout.JAVA_LONG, 256 + 24 * value, value);
                put(contexts[0], 256 + 24 * value);
            }
            pair.agents[0].doWork();
            while (contexts[0].cis.acquire(1) != contexts[0].pis[1]) {
                pair.work();
                pair.throwIfFailed();
            }
            assertEquals(4, contexts[1].signals.acquire(1));
        }
    }

    private static void put(GinPair.Context context) {
        put(context, 8);
    }

    private static void put(GinPair.Context context, long offset) {
        FORMAT.begin(context.words, GinOp.PUT | GinOp.SIGNAL_INC, 24);
        FORMAT.source(context.words, 1, offset);
        FORMAT.target(context.words, 1, 64);
        FORMAT.completion(context.words, 0, 1, 1);
        context.post(1);
    }

    private static void assertFailure(GinPair pair, int rank, String frame, String what) {
        Throwable failure = pair.communicators[rank].failure();
        assertNotNull(failure, "rank " + rank);
        assertTrue(failure.getMessage().contains(frame) && failure.getMessage().contains(what), failure.getMessage());
    }
}
