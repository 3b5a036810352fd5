package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;

/**
 * A context's put operations to the same bytes of a peer keep their order, whatever the path of each put. A get reads
 * the bytes of earlier puts.
 */
class DirectOrderTest {

    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;
    private static final int PLACE = 64;
    private static final int BACK = 128;
    private static final int PASSES = 200;

    @ParameterizedTest
    @CsvSource({"false, false, false", "true, false, false", "true, true, false", "false, false, true",
            "true, false, true", "true, true, true"})
    void theLaterPutStaysAndIsGot(boolean direct, boolean shared, boolean slow) {
        try (GinPair pair = new GinPair(new GinOptions(64, 8, Duration.ofSeconds(5)), null)) {
            if (shared) {
                pair.shareSignals(1, 4);
            }
            pair.serve();
            MemorySegment[] memory = new MemorySegment[2];
            StagedDevice[] staged = new StagedDevice[2];
            StagedMemory[] devices = new StagedMemory[2];
            GinPair.Context[] contexts = new GinPair.Context[2];
            for (int rank = 0; rank < 2; rank++) {
                memory[rank] = pair.arena.allocate(256, 64);
                staged[rank] = new StagedDevice(pair.arena.allocate(12 * 64, 64), 12, null);
                devices[rank] = new StagedMemory(memory[rank], staged[rank]);
                pair.communicators[rank].register(devices[rank]);
                contexts[rank] = pair.newContext(rank, 0, FORMAT, 8, 4, 0);
                pair.add(rank, contexts[rank]);
            }
            if (direct) {
                devices[0].reach(1, memory[1]);
            }
            memory[0].set(ValueLayout.JAVA_LONG, 0, 2);
            long[] words = contexts[0].words;
            boolean copies = direct && shared;
            staged[1].holding = slow && copies; // copies to another device complete in any order
            value(words, 1);
            contexts[0].post(1);
            FORMAT.begin(words, GinOp.PUT | GinOp.SIGNAL_INC, 8);
            FORMAT.source(words, 1, 0);
            FORMAT.target(words, 1, PLACE);
            FORMAT.completion(words, 0, 1, 1);
            contexts[0].post(1);
            work(pair);
            assertEquals(slow && copies ? 0 : 1, contexts[1].signals.acquire(1));
            staged[1].finishHeld();
            work(pair);
            assertEquals(1, contexts[1].signals.acquire(1));
            assertEquals(2, memory[1].get(ValueLayout.JAVA_LONG, PLACE));

            staged[1].holding = slow;
            value(words, 3);
            contexts[0].post(1);
            FORMAT.begin(words, GinOp.GET, 8);
            FORMAT.source(words, 1, PLACE);
            FORMAT.target(words, 1, BACK);
            contexts[0].post(1);
            work(pair);
            staged[1].finishHeld();
            work(pair);
            assertEquals(4, contexts[0].cis.acquire(1));
            assertEquals(3, memory[0].get(ValueLayout.JAVA_LONG, BACK));
            assertTrue(devices[0].copies > 0 == copies && devices[0].reads > 0 == copies,
                    "where nobody would know, frames keep the order");
        }
    }

    /**
     * A short put is ordered after all earlier operations. A long put is ordered only after an earlier put of a value
     * to the same bytes. A get is ordered after puts to the bytes that it reads.
     */
    @Test
    void onlyWhatTellsOfOthersIsBehindThem() {
        try (GinPair pair = new GinPair(new GinOptions(64, 8, Duration.ofSeconds(5)), null)) {
            pair.shareSignals(1, 4);
            pair.serve();
            StagedMemory[] devices = new StagedMemory[2];
            StagedDevice[] staged = new StagedDevice[2];
            GinPair.Context[] contexts = new GinPair.Context[2];
            MemorySegment[] memory = new MemorySegment[2];
            for (int rank = 0; rank < 2; rank++) {
                memory[rank] = pair.arena.allocate(1024, 64);
                staged[rank] = new StagedDevice(pair.arena.allocate(12 * 64, 64), 12, null);
                devices[rank] = new StagedMemory(memory[rank], staged[rank]);
                pair.communicators[rank].register(devices[rank]);
                contexts[rank] = pair.newContext(rank, 0, FORMAT, 8, 4, 0);
                pair.add(rank, contexts[rank]);
            }
            devices[0].reach(1, memory[1]);
            staged[0].holding = true;
            staged[1].holding = true;
            put(contexts[0], 512, 65);
            work(pair);
            assertFalse(devices[0].ordered, "it tells of nothing");
            put(contexts[0], 600, 64);
            work(pair);
            assertTrue(devices[0].ordered, "it may tell of the put before it");
            get(contexts[0], 512, 65);
            work(pair);
            assertTrue(devices[0].ordered, "it reads what is being put");
            get(contexts[0], 0, 65);
            work(pair);
            assertEquals(2, devices[0].reads);
            assertFalse(devices[0].ordered, "it reads what nobody puts");
            staged[0].finishHeld();
            work(pair);

            staged[1].holding = true;
            value(contexts[0].words, 1);
            contexts[0].post(1); // a put to the value's bytes waits until the peer's device has stored the value
            put(contexts[0], 512, 65);
            work(pair);
            assertEquals(3, devices[0].copies, "a long put elsewhere does not wait for a value");
            put(contexts[0], PLACE - 8, 65);
            work(pair);
            assertEquals(3, devices[0].copies, "to the same bytes it does");
            staged[1].finishHeld();
            work(pair);
            assertEquals(4, devices[0].copies);
            assertEquals(6 + 1, contexts[0].cis.acquire(1));
        }
    }

    private static void put(GinPair.Context context, long target, int bytes) {
        FORMAT.begin(context.words, GinOp.PUT, bytes);
        FORMAT.source(context.words, 1, 0);
        FORMAT.target(context.words, 1, target);
        context.post(1);
    }

    private static void get(GinPair.Context context, long source, int bytes) {
        FORMAT.begin(context.words, GinOp.GET, bytes);
        FORMAT.source(context.words, 1, source);
        FORMAT.target(context.words, 1, 800);
        context.post(1);
    }

    private static void value(long[] words, long value) {
        FORMAT.begin(words, GinOp.PUT | GinOp.INLINE, 8);
        FORMAT.inline(words, value);
        FORMAT.target(words, 1, PLACE);
    }

    private static void work(GinPair pair) {
        for (int pass = 0; pass < PASSES; pass++) {
            pair.work();
        }
        pair.throwIfFailed();
    }
}
