package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.millrace.fuzz.Fuzz;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.TestOptions;

/** Both ends of a ring, while another process writes arbitrary bytes, positions and states into the ring. */
@Tag("slow")
class RingFuzzTest {

    private static final int RING = 16 << 10;
    private static final int DATA = RING;
    /**
     * Number of bytes at the beginning of an input. These bytes replace counters and other words of the ring. The
     * remaining bytes of the input replace frames.
     */
    private static final int WORDS = 240;
    private static final int FRAMES = 768;
    private static final int PASSES = 40;
    private static final ShmOptions OPTIONS = TestOptions.ring(RING, 1 << 10);
    private static final byte GUARD = 0x77;
    /** Tag of the first frame: the magic number, and sequence 0. */
    private static final long FIRST_TAG = 0x4d69466d;
    private static final MemorySegment UNTOUCHED = MemorySegment.ofArray(new byte[DATA]).fill(GUARD);

    private interface Use {
        void of(RingPair pair, MemoryRegion inside);
    }

    /** Fills the ring with frames, one of them incomplete. */
    private static void fill(RingPair pair, MemoryRegion memory) {
        FrameHeader header = new FrameHeader();
        for (int bytes : new int[] {0, 24, 100, 200}) {
            header.payloadBytes(bytes);
            header.word(0, bytes);
            pair.sender().offer(header, memory, 0);
        }
        pair.sender().progress();
    }

    /** Returns all bytes of the ring: the words of producer and consumer, and the data. */
    private static byte[] snapshot(RingPair pair) {
        byte[] all = new byte[RingLayout.DATA_OFFSET + RING];
        for (int at = 0; at < all.length; at += Long.BYTES) {
            MemorySegment.ofArray(all).set(ValueLayout.JAVA_LONG_UNALIGNED, at, pair.ring().getLong(at));
        }
        return all;
    }

    private static List<byte[]> recorded(RingPair.Maker maker) throws Exception {
        List<byte[]> all = new ArrayList<>();
        withPair(maker, (pair, memory) -> {
            fill(pair, memory);
            all.add(squeezed(snapshot(pair)));
            receive(pair, memory);
            all.add(squeezed(snapshot(pair)));
        });
        return all;
    }

    /** Returns the ring offset of an input's byte; -1 if none. An input contains the ring's words, then frames. */
    private static int place(int at) {
        int[][] parts = {{0, 64}, {128, 16}, {256, 32}, {512, 64}, {640, 64}, {RingLayout.DATA_OFFSET, FRAMES}};
        int left = at;
        for (int[] part : parts) {
            if (left < part[1]) {
                return part[0] + left;
            }
            left -= part[1];
        }
        return -1;
    }

    private static byte[] squeezed(byte[] ring) {
        byte[] parts = new byte[WORDS + FRAMES];
        for (int at = 0; at < parts.length; at++) {
            parts[at] = ring[place(at)];
        }
        return parts;
    }

    private static void write(RingPair pair, byte[] input) {
        MemorySegment bytes = MemorySegment.ofArray(input);
        for (int at = 0; at + Long.BYTES <= input.length && place(at) >= 0; at += Long.BYTES) {
            long value = bytes.get(ValueLayout.JAVA_LONG_UNALIGNED, at);
            if (pair.ring().getLong(place(at)) != value) {
                pair.ring().putLongRelease(place(at), value);
            }
        }
    }

    /**
     * Receives frames. Each frame must have the next number and a possible length, and its payload must be within its
     * destination.
     */
    private static void receive(RingPair pair, MemoryRegion memory) {
        long next = 0;
        int frames = 0;
        for (int pass = 0; pass < PASSES; pass++) {
            FrameHeader header = pair.receiver().poll();
            if (header != null) {
                long bytes = header.payloadBytes();
                long place = RingLayout.DATA_OFFSET + next % RING;
                assertEquals(FIRST_TAG + ((long) frames << Integer.SIZE), pair.ring().getLong(place), "not the next");
                assertTrue(bytes >= 0 && bytes <= FrameLayout.MAX_PAYLOAD_BYTES, "a payload of " + bytes);
                if (bytes > memory.segment().byteSize()) {
                    assertThrows(IndexOutOfBoundsException.class, () -> pair.receiver().accept(memory, 0));
                    return;
                }
                frames++;
                boolean elsewhere = pair.ring().getLong(place + Long.BYTES) != bytes;
                next += FrameLayout.HEADER_BYTES + (elsewhere ? RingLayout.ALIGNMENT : RingLayout.align(bytes));
                pair.receiver().accept(memory, 0);
            }
            pair.receiver().progress();
        }
    }

    private static void withPair(RingPair.Maker maker, Use use) throws Exception {
        try (Arena arena = Arena.ofConfined(); RingPair pair = maker.make(0, UnaryOperator.identity())) {
            MemorySegment guarded = arena.allocate(3 * DATA, 64).fill(GUARD);
            use.of(pair, pair.register(guarded.asSlice(DATA, DATA)));
            assertEquals(-1, guarded.asSlice(0, DATA).mismatch(UNTOUCHED), "before the destination");
            assertEquals(-1, guarded.asSlice(2L * DATA, DATA).mismatch(UNTOUCHED), "behind the destination");
        }
    }

    private interface End {
        void goesOn();
    }

    /** Checks that an end refuses an impossible position of the other end, with a message that names the position. */
    private static void assertBelieved(boolean possible, long position, End end) {
        try {
            end.goesOn();
            assertTrue(possible, () -> "a position of " + position + " was believed");
        } catch (ConnectionException refused) {
            String message = refused.getMessage();
            assertTrue(possible ? message.length() > 10 : message.contains("position is " + position), message);
        }
    }

    private static boolean isPosition(long position, long least, long most) {
        return position >= least && position <= most && position % RingLayout.ALIGNMENT == 0;
    }

    @Test
    void sharedRings() throws Exception {
        try (RingPair.Maker maker = new RingPair.Maker(OPTIONS)) {
            Fuzz.run("shared rings", 1_000, recorded(maker), input -> withPair(maker, (pair, memory) -> {
                fill(pair, memory);
                write(pair, input);
                long written = pair.ring().getLongAcquire(RingLayout.PRODUCER_POSITION);
                assertBelieved(isPosition(written, 0, RING), written, () -> receive(pair, memory));
            }));
        }
    }

    /** Lets the consumer read a little, and fills the ring until the producer waits for room. */
    private static void fillUp(RingPair pair, MemoryRegion memory) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(DATA);
        pair.sender().offer(header, memory, 0);
        pair.sender().offer(header, memory, 0);
        pair.sender().progress();
        pair.receiver().poll();
        pair.receiver().accept(memory, 0);
        while (pair.sender().progress() > 0) {
            // The loop ends when the ring is full.
        }
    }

    /** Invalid values in the words that the consumer writes. A producer that waits for room reads these words. */
    @Test
    void consumersOfRings() throws Exception {
        try (RingPair.Maker maker = new RingPair.Maker(OPTIONS)) {
            List<byte[]> recorded = new ArrayList<>();
            withPair(maker, (pair, memory) -> {
                fillUp(pair, memory);
                recorded.add(Arrays.copyOf(squeezed(snapshot(pair)), WORDS));
            });
            Fuzz.run("consumers of rings", 3_000, recorded, input -> withPair(maker, (pair, memory) -> {
                fillUp(pair, memory);
                long before = pair.ring().getLongAcquire(RingLayout.CONSUMER_POSITION);
                long written = pair.ring().getLongAcquire(RingLayout.PRODUCER_POSITION);
                assertTrue(before > 0 && written > RING);
                write(pair, input);
                long read = pair.ring().getLongAcquire(RingLayout.CONSUMER_POSITION);
                assertBelieved(isPosition(read, before, written), read, () -> {
                    for (int pass = 0; pass < PASSES; pass++) {
                        pair.sender().progress();
                    }
                });
            }));
        }
    }
}
