package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.ToLongFunction;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;
import org.millrace.config.Settings.PayloadCheck;

/**
 * Random programs over memory with copies that end late and in any order. The test checks two conditions after every
 * pass. First, all bytes before an arrived signal have arrived. Second, the source of a completed operation is free:
 * the test overwrites it at once.
 */
@Tag("slow")
@Tag("optimized")
class GinOrderTest {

    private static final int CONTEXTS = 3;
    private static final int CHUNK = 64;
    private static final int WINDOW = 1 << 16;
    private static final long FIRST = Long.MAX_VALUE - 1023;

    /** A put, get, value or VA signal that was posted. */
    private record Posted(int peer, int index, long source, long target, byte[] expected, long signals, long vaSignals,
            boolean isGet) {
    }

    private final List<List<Posted>> posted = new ArrayList<>();
    private final long[][] signals = new long[CONTEXTS][2];
    private final int[][] checked = new int[CONTEXTS][2];
    private final long[][] vaSignals = new long[CONTEXTS][2];
    private int longest;

    /**
     * Paths on which bytes and signals reach the peer.
     *
     * @param ringBytes size of the staging rings; 0 for none
     * @param reached   whether a rank adds to its peer's signals in shared memory if no frame to the peer is in flight
     * @param direct    whether bytes of windows are copied from device to device
     */
    private record Ways(long ringBytes, boolean reached, boolean direct) {
    }

    /** Scenarios. Each one runs with every seed. */
    private enum Scenario {
        /** All data is sent in frames. */
        FRAMES {
            @Override
            Ways ways(long seed) {
                return new Ways(0, false, false);
            }
        },
        /** Rings of two to sixteen chunks; their positions wrap soon. */
        STAGED_IN_SHARED_MEMORY {
            @Override
            Ways ways(long seed) {
                return new Ways(2 * CHUNK << seed % 4, false, false);
            }
        },
        /** A rank adds to signals of its peer in shared memory. Half of the seeds also stage bytes in rings. */
        SIGNALS_IN_SHARED_MEMORY {
            @Override
            Ways ways(long seed) {
                return new Ways(seed % 2 == 0 ? 0 : 2 * CHUNK << seed % 4, true, false);
            }
        },
        /** Devices copy to each other, while values and signals in windows are sent in frames. */
        DEVICE_TO_DEVICE {
            @Override
            Ways ways(long seed) {
                return new Ways(0, seed % 2 == 0, true);
            }
        };

        abstract Ways ways(long seed);
    }

    private static Stream<Arguments> programs() {
        return Arrays.stream(Scenario.values())
                .flatMap(scenario -> LongStream.rangeClosed(1, 12).mapToObj(seed -> Arguments.of(scenario, seed)));
    }

    @ParameterizedTest
    @MethodSource("programs")
    void signalsStayBehindWhatTheyCover(Scenario scenario, long seed) {
        Ways ways = scenario.ways(seed);
        boolean reached = ways.reached;
        boolean direct = ways.direct;
        Random random = new Random(seed);
        GinDescriptorFormat format = GinDescriptorFormat.values()[(int) ((seed - 1) / 3)];
        try (GinPair pair = new GinPair(
                new GinOptions(CHUNK, 8, Duration.ofSeconds(5), seed % 4 == 0 ? PayloadCheck.FAIL : PayloadCheck.OFF),
                random)) {
            StagingRing[] rings = ways.ringBytes == 0 ? null : pair.stage(ways.ringBytes, FIRST);
            if (reached) {
                pair.shareSignals(CONTEXTS, 4);
            }
            pair.serve();
            MemorySegment[] memory = new MemorySegment[2];
            StagedDevice[] staged = new StagedDevice[2];
            StagedMemory[] devices = new StagedMemory[2];
            Window[] windows = new Window[2];
            GinPair.Context[][] contexts = new GinPair.Context[2][CONTEXTS];
            for (int rank = 0; rank < 2; rank++) {
                memory[rank] = pair.arena.allocate(WINDOW, 64);
                staged[rank] = new StagedDevice(pair.arena.allocate(12 * CHUNK, 64), 12, random);
                devices[rank] = new StagedMemory(memory[rank], staged[rank]);
                windows[rank] = pair.communicators[rank].register(devices[rank]);
                for (int c = 0; c < CONTEXTS; c++) {
                    contexts[rank][c] = pair.newContext(rank, c, format, 8, 4, (int) seed - 6);
                    pair.add(rank, contexts[rank][c]);
                }
            }
            if (direct) {
                devices[0].reach(1, memory[1]);
                devices[1].reach(0, memory[0]);
            }
            for (int c = 0; c < CONTEXTS; c++) {
                posted.add(new ArrayList<>());
            }
            longest = direct ? 20 * CHUNK : 4 * CHUNK;
            String program = scenario + ", seed " + seed + ", " + format;
            long place = 64;
            while (place < WINDOW - 2 * longest - 2) {
                int c = random.nextInt(CONTEXTS);
                int peer = random.nextInt(2);
                // if signals are shared, posts are rare: a rank uses shared signals only while no frame is in flight
                if (random.nextInt(reached ? 24 : 3) == 0 && contexts[0][c].hasRoom(peer)) {
                    place = post(random, format, contexts[0][c], c, peer, windows[0].handle(), memory, place);
                }
                pair.work();
                check(memory, contexts, program);
                pair.throwIfFailed();
            }
            for (int pass = 0; pass < 200_000
                    && !(pair.communicators[0].isDrained() && pair.communicators[1].isDrained()); pass++) {
                pair.work();
                check(memory, contexts, program);
                pair.throwIfFailed();
            }
            for (int c = 0; c < CONTEXTS; c++) {
                for (int peer = 0; peer < 2; peer++) {
                    assertEquals(vaSignals[c][peer], memory[peer].get(ValueLayout.JAVA_LONG, vaSignal(c)), program);
                    assertEquals(signals[c][peer], contexts[peer][c].signals.acquire(1),
                            program + ", context " + c + ": signal at rank " + peer);
                    assertEquals(contexts[0][c].pis[peer], contexts[0][c].cis.acquire(peer),
                            program + ": all is complete");
                }
                check(memory, contexts, program);
            }
            assertEquals(reached, pair.communicators[0].served().reached() > 0,
                    program + ": signals that needed no frame");
            // Without shared signals a rank does not know which signals have reached the peer. Data that follows a
            // signal is then sent in frames, instead of being copied directly.
            if (reached || !direct) {
                assertEquals(direct, devices[0].copies > 0 && (!format.hasGets() || devices[0].reads > 0),
                        program + ": copies from device to device");
            }
            if (rings == null) {
                assertTrue(reached || direct || staged[0].refusals + staged[1].refusals > 0,
                        program + ": the staging was never full, so that was not tested");
            } else {
                assertTrue(rings[0].released().acquire(0) < 0,
                        program + ": the positions of what rank 0 staged did not wrap");
                assertEquals(format.hasGets(), rings[1].released().acquire(0) < 0,
                        program + ": answers are staged too");
            }
        }
    }

    /**
     * Posts a random operation. Each operation has its own source and target range, so that every byte can be checked
     * at any time. Returns the next free offset.
     */
    private long post(Random random, GinDescriptorFormat format, GinPair.Context context, int c, int peer, long window,
            MemorySegment[] memory, long place) {
        int kind = random.nextInt(format == GinDescriptorFormat.V28 ? 3 : format.hasGets() ? 5 : 4);
        int size = kind == 0 ? 1 + random.nextInt(8) : random.nextInt(5) == 0 ? 0 : 1 + random.nextInt(longest);
        boolean signalled = kind < 3 && random.nextBoolean();
        long amount = signalled ? random.nextLong() : 0;
        byte[] bytes = new byte[kind == 3 ? 0 : size];
        random.nextBytes(bytes);
        long source = place + 1;
        long target = source + size + 1;
        long[] words = context.words;
        int signalOp = signalled ? GinOp.SIGNAL_ADD : 0;
        if (kind == 0) {
            long value = random.nextLong();
            for (int i = 0; i < size; i++) {
                value = value & ~(0xffL << 8 * i) | (bytes[i] & 0xffL) << 8 * i;
            }
            format.begin(words, GinOp.PUT | GinOp.INLINE | signalOp, size);
            format.inline(words, value);
            format.target(words, window, target);
            format.completion(words, 0, 1, amount);
        } else if (kind < 3) {
            MemorySegment.copy(bytes, 0, memory[0], ValueLayout.JAVA_BYTE, source, size);
            format.begin(words, GinOp.PUT | GinOp.COUNTER | signalOp, size);
            format.source(words, window, source);
            format.target(words, window, target);
            format.completion(words, 2, 1, amount);
        } else if (kind == 3) {
            format.begin(words, GinOp.VA_SIGNAL | GinOp.SIGNAL_ADD, 0);
            format.source(words, window, vaSignal(c));
            format.completion(words, 0, 0, 3);
            vaSignals[c][peer] += 3;
        } else {
            MemorySegment.copy(bytes, 0, memory[peer], ValueLayout.JAVA_BYTE, source, size);
            format.begin(words, GinOp.GET, size);
            format.source(words, window, source);
            format.target(words, window, target);
        }
        signals[c][peer] += amount;
        posted.get(c)
                .add(new Posted(peer, context.post(peer), source, target, bytes, signals[c][peer], vaSignals[c][peer],
                        kind == 4));
        return target + size;
    }

    private void check(MemorySegment[] memory, GinPair.Context[][] contexts, String program) {
        for (int c = 0; c < CONTEXTS; c++) {
            for (int peer = 0; peer < 2; peer++) {
                List<Posted> all = posted.get(c);
                int covered = Math.max(covered(all, peer, Posted::signals, contexts[peer][c].signals.acquire(1)),
                        covered(all, peer, Posted::vaSignals, memory[peer].get(ValueLayout.JAVA_LONG, vaSignal(c))));
                for (int i = checked[c][peer]; i < covered; i++) {
                    Posted put = all.get(i);
                    if (put.peer == peer && !put.isGet) {
                        assertThere(memory[peer], put,
                                program + ", context " + c + ": signalled, put " + i + " to rank " + peer);
                    }
                }
                checked[c][peer] = Math.max(checked[c][peer], covered);
                int complete = contexts[0][c].cis.acquire(peer);
                for (int i = 0; i < all.size(); i++) {
                    Posted each = all.get(i);
                    if (each.peer == peer && complete - each.index > 0) {
                        if (each.isGet) {
                            assertThere(memory[0], each,
                                    program + ", context " + c + ": get " + i + " from rank " + peer + " is complete");
                        } else if (each.expected.length > 0) {
                            // the operation has read its source, so the test overwrites the source
                            memory[0].asSlice(each.source, each.expected.length).fill((byte) 0x5a);
                        }
                    }
                }
            }
        }
    }

    /** Returns the position, from 1, of the operation that set the signal to the value; 0 if the value is 0. */
    private static int covered(List<Posted> all, int peer, ToLongFunction<Posted> signal, long value) {
        for (int i = 0; i < all.size() && value != 0; i++) {
            if (all.get(i).peer == peer && signal.applyAsLong(all.get(i)) == value) {
                return i + 1;
            }
        }
        return 0;
    }

    /** Returns the offset of a context's VA signal in the window. */
    private static long vaSignal(int context) {
        return 8 + Long.BYTES * context;
    }

    private static void assertThere(MemorySegment memory, Posted each, String what) {
        assertEquals(-1,
                memory.asSlice(each.target, each.expected.length).mismatch(MemorySegment.ofArray(each.expected)),
                what + ": first different byte of " + each.expected.length);
    }
}
