package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.proxy.MemoryFrames;

/**
 * A peer that sends invalid frames. Each frame is refused before it changes a window or a signal. The message names the
 * peer and the frame.
 */
class HostileFramesTest {

    private static final int WINDOW = 4096;
    private static final int CHUNK = 1024;
    private static final int RING = 4096;

    @Test
    void whatFitsIsTaken() {
        assertNull(failureOf(true, header -> put(header, 1, WINDOW - 8, 8)));
        assertNull(failureOf(true, header -> {
            put(header, 1, 0, CHUNK);
            GinHeader.signal(header, 3, 1);
        }));
    }

    @Test
    void strangersAreRefused() {
        assertRefused("hello first", failureOf(false, header -> put(header, 1, 0, 8)));
        assertRefused("hello first", failureOf(false, header -> {
            GinHeader.hello(header, 1, 2, CHUNK);
            header.word(1, GinHeader.PROTOCOL + 1);
        }));
        assertRefused("it states that it is rank 0 of 2",
                failureOf(false, header -> GinHeader.hello(header, 0, 2, CHUNK)));
        assertRefused("rank 1 of 3", failureOf(false, header -> GinHeader.hello(header, 1, 3, CHUNK)));
        assertRefused("its chunks have 4096 bytes and ours 1024",
                failureOf(false, header -> GinHeader.hello(header, 1, 2, 4096)));
    }

    @Test
    void putsOutsideTheWindowAreRefused() {
        for (long[] range : new long[][] {{WINDOW, 8}, {WINDOW - 7, 8}, {-1, 8}, {-8, 8}, {Long.MAX_VALUE, 8},
                {Long.MIN_VALUE, 1}}) {
            assertRefused("are not within window 1 of 4096 bytes",
                    failureOf(true, header -> put(header, 1, range[0], range[1])));
            assertRefused("are not within window 1", failureOf(true, header -> {
                put(header, 1, range[0], 0);
                GinHeader.inline(header, range[1], -1);
            }));
        }
        assertRefused("window 2 was closed", failureOf(true, header -> put(header, 2, 0, 8)));
        assertRefused("window 3 is not registered (there are 2), and was not within 0 ms",
                failureOf(true, header -> put(header, 3, 0, 8)));
        assertRefused("window 3 is not registered (there are 2), and was not within 0 ms", failureOf(true, header -> {
            put(header, 3, 0, 8);
            GinHeader.signal(header, 0, 1); // the signal is valid, because its context exists
        }));
        assertRefused("window 0 is not registered", failureOf(true, header -> put(header, 0, 0, 8)));
        assertRefused("window -1 is not registered", failureOf(true, header -> put(header, -1, 0, 8)));
        assertRefused("a payload of at most 1024", failureOf(true, header -> put(header, 1, 0, CHUNK + 1)));
        assertRefused("a value of 1 to 8 bytes", failureOf(true, header -> {
            put(header, 1, 0, 0);
            GinHeader.inline(header, 9, -1);
        }));
        assertRefused("a value of 1 to 8 bytes", failureOf(true, header -> {
            put(header, 1, 0, 8);
            GinHeader.inline(header, 8, -1);
        }));
    }

    @Test
    void signalsThatAreNotThereAreRefused() {
        for (long signal : new long[] {4, -1, Long.MAX_VALUE, 1L << 32 | 4}) {
            assertRefused("the context has 4 signals", failureOf(true, header -> {
                put(header, 1, 0, 8);
                GinHeader.signal(header, 0, 1);
                header.word(3, signal);
            }));
        }
        assertRefused("there is no such context", failureOf(true, header -> {
            GinHeader.set(header, GinHeader.PUT, 1, 0, 0, 0);
            GinHeader.signal(header, 0, 1);
        }));
        assertRefused("at a multiple of 8",
                failureOf(true, header -> GinHeader.set(header, GinHeader.VA_SIGNAL, 0, 1, 4, 0)));
        assertRefused("not within window",
                failureOf(true, header -> GinHeader.set(header, GinHeader.VA_SIGNAL, 0, 1, WINDOW, 0)));
    }

    @Test
    void getsAndAnswersThatMakeNoSenseAreRefused() {
        assertRefused("it asks for 0 bytes",
                failureOf(true, header -> GinHeader.set(header, GinHeader.GET, 0, 1, 0, 0)));
        assertRefused("not within window 1",
                failureOf(true, header -> GinHeader.set(header, GinHeader.GET, 0, 1, 8, WINDOW)));
        assertRefused("no get is unanswered", failureOf(true, header -> {
            GinHeader.set(header, GinHeader.GET_DATA, 0, 1, 0, 0);
            header.payloadBytes(8);
        }));
        assertRefused("unknown kind of frame", failureOf(true, header -> GinHeader.set(header, 77, 0, 1, 0, 0)));
        assertRefused("unknown kind of frame", failureOf(true, header -> GinHeader.hello(header, 1, 2, CHUNK)));
    }

    @Test
    void stagedBytesLieWhereTheyMust() {
        assertNull(failureOf(true, header -> staged(header, 4096, 8)));
        assertNull(failureOf(true, header -> staged(header, 4096, CHUNK)));
        for (long offset : new long[] {0, 4095, 4096 + 64, 4096 + RING, 0xFFFF_FFFFL}) {
            assertRefused("its bytes are staged at " + offset + ", and not at 4096",
                    failureOf(true, header -> staged(header, offset, 8)));
        }
        for (long bytes : new long[] {0, CHUNK + 1, RING, 0xFFFF_FFFFL}) {
            assertRefused(bytes + " bytes are staged, and 1 to 1024 may be",
                    failureOf(true, header -> staged(header, 4096, bytes)));
        }
        assertRefused("without a payload are staged", failureOf(true, header -> {
            staged(header, 4096, 8);
            header.payloadBytes(8);
        }));
        assertRefused("without a payload are staged", failureOf(true, header -> {
            staged(header, 4096, 8);
            GinHeader.inline(header, 8, 1);
        }));
        assertRefused("without a payload are staged", failureOf(true, header -> {
            GinHeader.set(header, GinHeader.GET, 0, 1, 0, 8);
            GinHeader.staged(header, 4096, 8);
        }));
        assertRefused("are not within window 1", failureOf(true, header -> {
            GinHeader.set(header, GinHeader.PUT, 0, 1, WINDOW - 7, 0);
            GinHeader.staged(header, 4096, 8);
        }));
        assertRefused("no get is unanswered", failureOf(true, header -> {
            GinHeader.set(header, GinHeader.GET_DATA, 0, 0, 0, 0);
            GinHeader.staged(header, 4096, 8);
        }));
        assertRefused("no memory is shared to stage bytes in",
                failureOf(true, false, header -> staged(header, 4096, 8)));
    }

    /**
     * Random frames, one after another. Each frame is written within the window, waits for a staging buffer, or fails
     * the communicator. No staging buffer becomes free in this test.
     */
    @Test
    void noFrameReachesBeyondTheWindow() {
        int refused = 0;
        for (long seed = 0; seed < 3000; seed++) {
            Random random = new Random(seed);
            try (Arena arena = Arena.ofConfined()) {
                MemoryFrames back = new MemoryFrames(null);
                MemoryFrames forth = new MemoryFrames(null);
                GinCommunicator communicator = new GinCommunicator(0, 0, new FrameSender[] {null, forth.sender()},
                        new FrameReceiver[] {null, back.receiver()}, new GinOptions(CHUNK, 8, Duration.ZERO),
                        failure -> {});
                MemorySegment shared = arena.allocate(StagingRing.bytes(RING), 64);
                communicator.stageIn(1, new StagingRing(shared, shared.address()));
                communicator.stageOut(1, new StagingRing(shared, shared.address()));
                MemorySegment guarded = arena.allocate(3 * WINDOW, 64).fill((byte) 0x77);
                communicator.register(HostWindowMemory.register(new NoNetwork(), guarded.asSlice(WINDOW, WINDOW)));
                GinPair.Context context = new GinPair.Context(arena, 0, GinDescriptorFormat.V30, 4, 4, 0);
                communicator.add(context.agentSide);
                GinAgent agent = new GinAgent("test");
                agent.add(communicator);
                FrameSender peer = back.sender();
                FrameHeader header = new FrameHeader();
                GinHeader.hello(header, 1, 2, CHUNK);
                peer.offer(header, null, 0);
                MemorySegment payload = arena.allocate(2 * CHUNK).fill((byte) -1);
                // answers are accepted only while a get is in flight
                GinDescriptorFormat.V30.begin(context.words, GinOp.GET, 2 * CHUNK);
                GinDescriptorFormat.V30.source(context.words, 1, 0);
                GinDescriptorFormat.V30.target(context.words, 1, WINDOW - 2 * CHUNK);
                context.post(1);
                for (int frame = 0; frame <= seed % 4; frame++) {
                    fill(random, header);
                    peer.offer(header, MemoryFrames.region(payload), 0);
                    shared.set(ValueLayout.JAVA_LONG, 0, random.nextInt(8) == 0 ? random.nextLong() : 0);
                    for (int pass = 0; pass < 20; pass++) {
                        agent.doWork();
                    }
                }
                Throwable failure = communicator.failure();
                assertTrue(failure == null || failure.getMessage().contains("rank 1"), "seed " + seed + ": " + failure);
                for (int at = 0; at < WINDOW; at++) {
                    assertEquals(0x77, guarded.get(ValueLayout.JAVA_BYTE, at), "seed " + seed);
                    assertEquals(0x77, guarded.get(ValueLayout.JAVA_BYTE, 2 * WINDOW + at), "seed " + seed);
                }
                refused += failure == null ? 0 : 1;
                GinPair.remove(communicator, context);
            }
        }
        assertTrue(refused > 100 && refused < 2900, refused + " were refused");
    }

    private static void fill(Random random, FrameHeader header) {
        GinHeader.set(header, random.nextInt(8) == 0 ? random.nextInt(256) : 2 + random.nextInt(4),
                random.nextInt(8) == 0 ? random.nextInt() : 0, random.nextInt(8) == 0 ? number(random) : 1,
                number(random), random.nextBoolean() ? 0 : number(random));
        header.payloadBytes(random.nextBoolean() ? 0 : random.nextInt(CHUNK + 2));
        if (random.nextInt(4) == 0) {
            GinHeader.inline(header, random.nextInt(10), number(random));
        }
        if (random.nextInt(3) == 0) {
            GinHeader.signal(header, random.nextInt(5), random.nextLong());
        }
        if (random.nextInt(3) == 0) {
            header.payloadBytes(random.nextInt(8) == 0 ? 8 : 0);
            GinHeader.staged(header, random.nextBoolean() ? 4096 : 64 * random.nextInt(140), random.nextInt(CHUNK + 2));
        }
        if (random.nextInt(8) == 0) {
            header.word(random.nextInt(FrameHeader.WORDS), random.nextLong());
        }
    }

    private static long number(Random random) {
        return switch (random.nextInt(6)) {
            case 0 -> random.nextLong();
            case 1 -> WINDOW - 8 + random.nextInt(17);
            case 2 -> Long.MAX_VALUE - random.nextInt(300);
            default -> 8L * random.nextInt(9);
        };
    }

    private static void staged(FrameHeader header, long offset, long bytes) {
        put(header, 1, 0, 0);
        GinHeader.staged(header, offset, bytes);
    }

    private static void put(FrameHeader header, long window, long offset, long bytes) {
        GinHeader.set(header, GinHeader.PUT, 0, window, offset, 0);
        header.payloadBytes(bytes);
    }

    private static void assertRefused(String why, Throwable failure) {
        assertNotNull(failure, "taken, though " + why);
        assertTrue(failure.getMessage().startsWith("rank 0 refuses a frame of rank 1 over "), failure.getMessage());
        assertTrue(failure.getMessage().contains(why), failure.getMessage());
    }

    /** Returns the failure of rank 0 after a frame. Asserts that the memory is unchanged if there is a failure. */
    private static Throwable failureOf(boolean helloFirst, Consumer<FrameHeader> fill) {
        return failureOf(helloFirst, true, fill);
    }

    private static Throwable failureOf(boolean helloFirst, boolean ring, Consumer<FrameHeader> fill) {
        try (Arena arena = Arena.ofConfined()) {
            MemoryFrames back = new MemoryFrames(null);
            MemoryFrames forth = new MemoryFrames(null);
            List<Throwable> heard = new ArrayList<>();
            GinCommunicator communicator = new GinCommunicator(0, 0, new FrameSender[] {null, forth.sender()},
                    new FrameReceiver[] {null, back.receiver()}, new GinOptions(CHUNK, 8, Duration.ZERO), heard::add);
            if (ring) {
                MemorySegment shared = arena.allocate(StagingRing.bytes(RING), 64);
                communicator.stageIn(1, new StagingRing(shared, shared.address()));
            }
            MemorySegment memory = arena.allocate(WINDOW, 64);
            communicator.register(HostWindowMemory.register(new NoNetwork(), memory));
            communicator.deregister(communicator.register(HostWindowMemory.register(new NoNetwork(), memory)));
            GinPair.Context context = new GinPair.Context(arena, 0, GinDescriptorFormat.V30, 4, 4, 0);
            communicator.add(context.agentSide);
            GinAgent agent = new GinAgent("test");
            agent.add(communicator);
            FrameSender peer = back.sender();
            FrameHeader header = new FrameHeader();
            if (helloFirst) {
                GinHeader.hello(header, 1, 2, CHUNK);
                peer.offer(header, null, 0);
            }
            fill.accept(header);
            MemorySegment payload = arena.allocate(2 * CHUNK).fill((byte) -1);
            peer.offer(header, MemoryFrames.region(payload), 0);
            for (int pass = 0; pass < 1000; pass++) {
                agent.doWork();
            }
            Throwable failure = communicator.failure();
            if (failure != null) {
                assertEquals(-1, memory.mismatch(arena.allocate(WINDOW)), "the window was written");
                for (int signal = 0; signal < 4; signal++) {
                    assertEquals(0, context.signals.acquire(signal));
                }
                assertEquals(List.of(failure), heard);
            }
            assertEquals(failure == null ? 0 : 1, communicator.errorFlag().get(ValueLayout.JAVA_INT, 0));
            GinPair.remove(communicator, context);
            return failure;
        }
    }
}
