package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;

/** An agent that serves a million descriptors allocates no bytes. */
@Tag("slow")
@Tag("optimized")
class GinAllocationTest {

    private static final int DESCRIPTORS = 1_000_000;

    @ParameterizedTest
    @EnumSource(GinDescriptorFormat.class)
    void aMillionDescriptorsAllocateNothing(GinDescriptorFormat format) {
        aMillionDescriptors(format, false);
    }

    @Test
    void norDoTheyThroughAStagingRing() {
        aMillionDescriptors(GinDescriptorFormat.V30, true);
    }

    private static void aMillionDescriptors(GinDescriptorFormat format, boolean staged) {
        com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        assertTrue(threads.isThreadAllocatedMemoryEnabled(), "this JVM does not count allocated bytes");
        try (GinPair pair = new GinPair(GinOptions.defaults(), null)) {
            if (staged) {
                pair.stage(1 << 21, 0);
            }
            pair.serve();
            GinPair.Context[] contexts = new GinPair.Context[2];
            for (int rank = 0; rank < 2; rank++) {
                MemorySegment memory = pair.arena.allocate(4096, 64);
                pair.communicators[rank].register(HostWindowMemory.register(new NoNetwork(), memory));
                contexts[rank] = new GinPair.Context(pair.arena, 0, format, 16, 4, -1000);
                pair.add(rank, contexts[rank]);
            }
            run(pair, contexts[0], format);
            long before = threads.getCurrentThreadAllocatedBytes();
            run(pair, contexts[0], format);
            long allocated = threads.getCurrentThreadAllocatedBytes() - before;
            pair.throwIfFailed();
            assertEquals(DESCRIPTORS, contexts[1].signals.acquire(1), "half of them went to rank 1, twice");
            assertEquals(0, allocated, "bytes allocated over " + DESCRIPTORS + " descriptors");
        }
    }

    /**
     * The agent also allocates no bytes for flushes, for signals, and for gets whose answer arrives in a frame. Signals
     * are in a window, or in memory that both ranks share. The sender increases signals in shared memory directly.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void norDoesWhatComesBack(boolean staged) {
        GinDescriptorFormat format = GinDescriptorFormat.V30;
        com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        try (GinPair pair = new GinPair(GinOptions.defaults(), null)) {
            if (staged) {
                pair.stage(1 << 21, 0);
            }
            pair.shareSignals(1, 4);
            pair.serve();
            GinPair.Context[] contexts = new GinPair.Context[2];
            for (int rank = 0; rank < 2; rank++) {
                pair.communicators[rank]
                        .register(HostWindowMemory.register(new NoNetwork(), pair.arena.allocate(4096, 64)));
                contexts[rank] = pair.newContext(rank, 0, format, 16, 4, -1000);
                pair.add(rank, contexts[rank]);
            }
            runOthers(pair, contexts[0], format);
            long before = threads.getCurrentThreadAllocatedBytes();
            runOthers(pair, contexts[0], format);
            long allocated = threads.getCurrentThreadAllocatedBytes() - before;
            pair.throwIfFailed();
            assertEquals(2 * DESCRIPTORS / 4 / 2, contexts[1].signals.acquire(1),
                    "half of a quarter of them went to rank 1, twice");
            assertTrue(pair.communicators[0].served().reached() > 1000, "signals that needed no frame");
            assertEquals(0, allocated, "bytes allocated over " + DESCRIPTORS + " descriptors");
        }
    }

    private static void runOthers(GinPair pair, GinPair.Context context, GinDescriptorFormat format) {
        for (int i = 0; i < DESCRIPTORS; i++) {
            int peer = i & 1;
            switch (i >> 1 & 3) {
                case 0 -> {
                    format.begin(context.words, GinOp.GET, 24);
                    format.source(context.words, 1, 8);
                    format.target(context.words, 1, 64);
                }
                case 1 -> format.begin(context.words, GinOp.FLUSH, 0);
                case 2 -> {
                    format.begin(context.words, GinOp.VA_SIGNAL | GinOp.SIGNAL_ADD, 0);
                    format.source(context.words, 1, 8);
                    format.completion(context.words, 0, 0, 3);
                }
                default -> {
                    format.begin(context.words, GinOp.PUT | GinOp.SIGNAL_INC, 0);
                    format.completion(context.words, 0, 1, 1);
                }
            }
            while (!context.hasRoom(peer)) {
                pair.work();
            }
            context.post(peer);
            // completes all frames, because a signal is sent without a frame only while no frame is in flight
            if ((i & 63) == 5) {
                finish(pair, context);
            }
        }
        finish(pair, context);
    }

    private static void finish(GinPair pair, GinPair.Context context) {
        while (context.cis.acquire(0) != context.pis[0] || context.cis.acquire(1) != context.pis[1]
                || pair.work() > 0) {
            pair.work();
        }
    }

    private static void run(GinPair pair, GinPair.Context context, GinDescriptorFormat format) {
        for (int i = 0; i < DESCRIPTORS; i++) {
            int peer = i & 1;
            int inline = (i >> 1 & 1) == 0 ? 0 : GinOp.INLINE;
            format.begin(context.words, GinOp.PUT | inline | GinOp.SIGNAL_INC | (inline == 0 ? GinOp.COUNTER : 0),
                    inline == 0 ? 24 : 8);
            if (inline == 0) {
                format.source(context.words, 1, 8);
            } else {
                format.inline(context.words, i);
            }
            format.target(context.words, 1, 64);
            format.completion(context.words, 2, 1, 1);
            while (!context.hasRoom(peer)) {
                pair.work();
            }
            context.post(peer);
        }
        finish(pair, context);
    }
}
