package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;

/** Counts of served descriptors. Each descriptor is counted once, in its own context. */
class GinServedTest {

    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;
    private static final int CHUNK = 64;

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void everyKindIsCountedOnce(int peer) {
        try (GinPair pair = new GinPair(new GinOptions(CHUNK, 8, Duration.ofSeconds(5)), null)) {
            pair.serve();
            GinPair.Context[] contexts = new GinPair.Context[2];
            for (int rank = 0; rank < 2; rank++) {
                pair.communicators[rank]
                        .register(HostWindowMemory.register(new NoNetwork(), pair.arena.allocate(4096, 64)));
                for (int number = 0; number < 2; number++) {
                    GinPair.Context context = new GinPair.Context(pair.arena, number, FORMAT, 64, 4, 0);
                    pair.add(rank, context);
                    if (rank == 0) {
                        contexts[number] = context;
                    }
                }
            }
            GinPair.Context used = contexts[1];
            post(used, peer, GinOp.PUT, 5 * CHUNK); // a put in several frames counts once
            post(used, peer, GinOp.PUT | GinOp.SIGNAL_INC, 8);
            post(used, peer, GinOp.PUT | GinOp.INLINE, 8);
            post(used, peer, GinOp.PUT | GinOp.INLINE | GinOp.SIGNAL_ADD, 4);
            post(used, peer, GinOp.PUT | GinOp.SIGNAL_INC, 0);
            post(used, peer, GinOp.VA_SIGNAL | GinOp.SIGNAL_ADD, 0);
            post(used, peer, GinOp.FLUSH, 0);
            int gets = peer == 0 ? 0 : 3; // the rank posts no gets from its own window
            for (int i = 0; i < gets; i++) {
                post(used, peer, GinOp.GET, 16);
            }
            for (int pass = 0; pass < 1000
                    && !(pair.communicators[0].isDrained() && pair.communicators[1].isDrained()); pass++) {
                pair.work();
                pair.throwIfFailed();
            }
            GinServed expected = new GinServed(2, 2, 2, gets, 1, 2, 0);
            assertEquals(expected, used.agentSide.served());
            assertEquals(GinServed.NONE, contexts[0].agentSide.served());
            assertEquals(expected, pair.communicators[0].served());
            assertEquals(GinServed.NONE, pair.communicators[1].served(), "a rank that is put to serves nothing");
        }
    }

    private static void post(GinPair.Context context, int peer, int op, long bytes) {
        FORMAT.begin(context.words, op, bytes);
        if (GinOp.has(op, GinOp.INLINE)) {
            FORMAT.inline(context.words, 42);
        } else if (bytes > 0 || GinOp.has(op, GinOp.VA_SIGNAL)) {
            FORMAT.source(context.words, 1, 0);
        }
        if (bytes > 0) {
            FORMAT.target(context.words, 1, 1024);
        }
        FORMAT.completion(context.words, 0, 1, 1);
        context.post(peer);
    }

    /** Scripts read the first number of the line as the sum, so the line must begin with the sum. */
    @Test
    void theLineBeginsWithTheSum() {
        assertEquals(
                "descriptors served by Java: 21 (2 puts, 3 values, 4 signals alone, 5 gets, 7 flushes; "
                        + "1 puts and values brought a signal, 6 signals " + "without a frame)",
                new GinServed(2, 3, 4, 5, 7, 1, 6).toString());
        assertEquals(new GinServed(3, 5, 7, 9, 12, 3, 10),
                new GinServed(2, 3, 4, 5, 7, 1, 6).plus(new GinServed(1, 2, 3, 4, 5, 2, 4)));
    }
}
