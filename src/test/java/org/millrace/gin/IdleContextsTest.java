package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;

/**
 * 129 contexts are open, and only one is busy. The idle contexts cost little, and the agent finds new descriptors in
 * them.
 */
class IdleContextsTest {

    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;
    private static final int CONTEXTS = 129;
    /** Number of passes after which a queue without descriptors is certainly idle. */
    private static final int LONG = 6000;

    private final GinPair.Context[] contexts = new GinPair.Context[CONTEXTS];

    @Test
    void anIdleContextIsServedSoonBesideABusyOne() {
        try (GinPair pair = serve()) {
            GinPair.Context busy = contexts[0];
            for (int i = 0; i < LONG; i++) {
                postSignal(busy, 1);
                pair.work();
            }
            for (int number = CONTEXTS - 1; number > 0; number -= 7) {
                for (int peer = 0; peer < 2; peer++) {
                    int index = postSignal(contexts[number], peer);
                    int passes = 0;
                    while (contexts[number].cis.acquire(peer) != index + 1) {
                        postSignal(busy, 1);
                        pair.work();
                        passes++;
                        assertTrue(passes <= 2 * QueueWatch.IDLE_CYCLE,
                                "context " + number + " has waited " + passes + " passes");
                    }
                }
            }
            pair.throwIfFailed();
        }
    }

    @Test
    void whatComesToManyAtOnceIsServedOnceEach() {
        try (GinPair pair = serve()) {
            for (int i = 0; i < LONG; i++) {
                pair.work(); // no queue has a descriptor
            }
            for (int round = 1; round < 40; round++) {
                for (GinPair.Context context : contexts) {
                    for (int i = 0; i < round % 4; i++) {
                        postSignal(context, round & 1);
                    }
                }
                for (int i = 0; i < 20 || !pair.communicators[0].isDrained(); i++) {
                    pair.work();
                    pair.throwIfFailed();
                }
                for (int i = 0; round % 8 == 0 && i < LONG; i++) {
                    pair.work();
                }
            }
            int each = 0;
            for (int round = 1; round < 40; round++) {
                each += round % 4;
            }
            for (GinPair.Context context : contexts) {
                assertEquals(each, context.agentSide.served().signals());
            }
        }
    }

    private GinPair serve() {
        GinPair pair = new GinPair(new GinOptions(64, 64, Duration.ofSeconds(5)), null);
        pair.serve();
        for (int rank = 0; rank < 2; rank++) {
            for (int number = 0; number < CONTEXTS; number++) {
                GinPair.Context context = new GinPair.Context(pair.arena, number, FORMAT, 8, 4, 0);
                pair.add(rank, context);
                contexts[number] = rank == 0 ? context : contexts[number];
            }
        }
        return pair;
    }

    private static int postSignal(GinPair.Context context, int peer) {
        if (!context.hasRoom(peer)) {
            return context.pis[peer] - 1;
        }
        FORMAT.begin(context.words, GinOp.PUT | GinOp.SIGNAL_INC, 0);
        FORMAT.completion(context.words, 0, 1, 1);
        return context.post(peer);
    }
}
