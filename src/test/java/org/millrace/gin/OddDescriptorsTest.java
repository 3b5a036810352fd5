package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;

/** Descriptors that no NCCL kernel posts. Their destination is a peer or the rank itself. */
@Tag("slow")
class OddDescriptorsTest {

    private static final int CHUNK = 64;
    private static final int WINDOW = 256;
    private static final int GUARD = 4096;
    private static final int QUEUE = 8;

    private static void work(GinPair pair, int passes) {
        for (int pass = 0; pass < passes; pass++) {
            pair.work();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void whatHasNoBytesIsDoneOnceWhateverItsSizeSays(int peer) {
        GinDescriptorFormat format = GinDescriptorFormat.V30;
        try (GinPair pair = new GinPair(new GinOptions(CHUNK, 8, Duration.ofSeconds(5)), null)) {
            pair.serve();
            MemorySegment[] memory = new MemorySegment[2];
            GinPair.Context[] contexts = new GinPair.Context[2];
            for (int rank = 0; rank < 2; rank++) {
                memory[rank] = pair.arena.allocate(WINDOW, 64);
                pair.communicators[rank].register(HostWindowMemory.register(new NoNetwork(), memory[rank]));
                contexts[rank] = new GinPair.Context(pair.arena, 0, format, QUEUE, 4, 0);
                pair.add(rank, contexts[rank]);
            }
            long[] words = contexts[0].words;
            format.begin(words, GinOp.VA_SIGNAL | GinOp.SIGNAL_ADD, 3 * CHUNK);
            format.source(words, 1, 8);
            format.completion(words, 0, 0, 5);
            contexts[0].post(peer);
            format.begin(words, GinOp.FLUSH, 1L << 50);
            contexts[0].post(peer);
            work(pair, 50);
            pair.throwIfFailed();
            assertEquals(2, contexts[0].cis.acquire(peer));
            assertEquals(5, memory[peer].get(ValueLayout.JAVA_LONG, 8));
        }
    }

    /**
     * Random words. A descriptor is executed within the windows, or fails the communicators with a message. No other
     * byte is accessed, and no operation stalls.
     */
    @ParameterizedTest
    @EnumSource(GinDescriptorFormat.class)
    void noWordsReachBeyondTheWindows(GinDescriptorFormat format) {
        int refused = 0;
        int carriedOut = 0;
        for (long seed = 0; seed < 1500; seed++) {
            Random random = new Random(seed);
            try (GinPair pair = new GinPair(new GinOptions(CHUNK, 8, Duration.ZERO), null)) {
                pair.serve();
                MemorySegment[] guarded = new MemorySegment[2];
                GinPair.Context[] contexts = new GinPair.Context[2];
                for (int rank = 0; rank < 2; rank++) {
                    guarded[rank] = pair.arena.allocate(WINDOW + 2 * GUARD, 64).fill((byte) 0x77);
                    pair.communicators[rank]
                            .register(HostWindowMemory.register(new NoNetwork(), guarded[rank].asSlice(GUARD, WINDOW)));
                    contexts[rank] = new GinPair.Context(pair.arena, 0, format, QUEUE, 4, 0);
                    pair.add(rank, contexts[rank]);
                }
                int peer = random.nextInt(2);
                post(random, format, contexts[0].words);
                contexts[0].post(peer);
                work(pair, 60);
                boolean failed = pair.communicators[0].failure() != null || pair.communicators[1].failure() != null;
                assertTrue(failed || contexts[0].cis.acquire(peer) == 1, "seed " + seed + ": it stands still");
                for (int rank = 0; rank < 2; rank++) {
                    for (int at = 0; at < GUARD; at++) {
                        assertEquals(0x77, guarded[rank].get(ValueLayout.JAVA_BYTE, at), "seed " + seed);
                        assertEquals(0x77, guarded[rank].get(ValueLayout.JAVA_BYTE, GUARD + WINDOW + at),
                                "seed " + seed);
                    }
                    Throwable failure = pair.communicators[rank].failure();
                    if (failure != null) {
                        assertTrue(failure instanceof GinException, "seed " + seed + ": " + failure);
                        assertNotNull(failure.getMessage());
                    }
                }
                refused += failed ? 1 : 0;
                carriedOut += failed ? 0 : 1;
            }
        }
        assertTrue(refused > 100 && carriedOut > 100, refused + " were refused, and " + carriedOut + " carried out");
    }

    /** Posts a descriptor that is nearly valid: every field is valid, or at the edge of the valid range, or random. */
    private static void post(Random random, GinDescriptorFormat format, long[] words) {
        int[] ops = {GinOp.PUT, GinOp.PUT | GinOp.INLINE, GinOp.PUT | GinOp.SIGNAL_INC,
                GinOp.PUT | GinOp.INLINE | GinOp.SIGNAL_ADD | GinOp.COUNTER, GinOp.VA_SIGNAL | GinOp.SIGNAL_ADD,
                GinOp.GET, GinOp.GET | GinOp.COUNTER, GinOp.FLUSH};
        int op = random.nextInt(4) == 0 ? random.nextInt(256) : ops[random.nextInt(ops.length)];
        format.begin(words, op, number(random) & (1L << 56) - 1);
        if (GinOp.has(op, GinOp.INLINE)) {
            format.inline(words, random.nextLong());
        } else {
            format.source(words, handle(random), number(random));
        }
        format.target(words, handle(random), number(random));
        format.completion(words, random.nextInt(5), random.nextInt(5), random.nextLong());
    }

    private static long handle(Random random) {
        return random.nextInt(8) == 0 ? number(random) : 1;
    }

    private static long number(Random random) {
        return switch (random.nextInt(8)) {
            case 0 -> random.nextLong();
            case 1 -> WINDOW - 8 + random.nextInt(17);
            case 2 -> Long.MAX_VALUE - random.nextInt(300);
            case 3 -> random.nextInt(WINDOW);
            default -> 8L * random.nextInt(9);
        };
    }
}
