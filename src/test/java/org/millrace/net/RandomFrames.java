package org.millrace.net;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Random;

/**
 * A stream of frames that both ends can compute from a seed: lengths around every threshold, words, and unique
 * payloads. Each end is a state machine that does a little work on every call. One thread can drive both ends, or each
 * end can have its own thread.
 */
public final class RandomFrames {

    private static final int[] LENGTHS = {0, 1, 7, 63, 64, 65, 4031, 4032, 4095, 4096, 4097, 16_319, 16_320, 16_383,
            16_384, 16_385, 65_535, 65_536, 65_537, 100_001, 524_288, 1 << 20, (1 << 20) + 1};

    private RandomFrames() {}

    /** Drives both ends on this thread until everything was sent and received. */
    public static void exchange(Sending sending, Receiving receiving) {
        boolean sent = false;
        boolean received = false;
        while (!sent || !received) {
            sent = sending.step();
            received = receiving.step();
        }
    }

    /** Returns {length, offset of the payload within its slot} of the frame with the given number. */
    private static int[] shape(long seed, long frame, int maxBytes) {
        Random random = new Random(seed * 1_000_003 + frame);
        int length = switch (random.nextInt(4)) {
            case 0 -> random.nextInt(200);
            case 1 -> random.nextInt(40_000);
            case 2 -> LENGTHS[random.nextInt(LENGTHS.length)];
            default -> random.nextInt(20) == 0 ? random.nextInt(maxBytes + 1) : random.nextInt(3_000);
        };
        return new int[] {Math.min(length, maxBytes), random.nextInt(64)};
    }

    private static void fill(MemorySegment memory, long at, int length, long seed, long frame) {
        long state = seed ^ frame * 0x9e3779b97f4a7c15L;
        long i = 0;
        for (; i + 8 <= length; i += 8) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            memory.set(ValueLayout.JAVA_LONG_UNALIGNED, at + i, state);
        }
        for (; i < length; i++) {
            memory.set(ValueLayout.JAVA_BYTE, at + i, (byte) (state >>> i % 8 * 8));
        }
    }

    /** Offers as many frames as the connection accepts. */
    public static final class Sending {
        private final FrameSender sender;
        private final MemoryRegion region;
        private final int slots;
        private final int slotBytes;
        private final long seed;
        private final long frames;
        private final FrameHeader header = new FrameHeader();
        private final Random rhythm;
        private long offered;

        public Sending(FrameSender sender, MemoryRegion region, int slots, long seed, long frames) {
            this.sender = sender;
            this.region = region;
            this.slots = slots;
            this.slotBytes = (int) (region.segment().byteSize() / slots);
            this.seed = seed;
            this.frames = frames;
            rhythm = new Random(seed);
        }

        /** Does a little work. Returns true once everything was sent. */
        public boolean step() {
            int offers = rhythm.nextInt(4);
            while (offers-- > 0 && offered < frames && offered - sender.framesCompleted() < slots) {
                int[] shape = shape(seed, offered, slotBytes - 64);
                long at = offered % slots * slotBytes + shape[1];
                fill(region.segment(), at, shape[0], seed, offered);
                header.payloadBytes(shape[0]);
                for (int i = 0; i < FrameHeader.WORDS; i++) {
                    header.word(i, seed + offered * FrameHeader.WORDS + i);
                }
                if (!sender.offer(header, shape[0] == 0 ? null : region, at)) {
                    break;
                }
                offered++;
            }
            sender.progress();
            return sender.framesCompleted() == frames;
        }
    }

    /** Accepts the frames at random moments, and compares them byte for byte once they are complete. */
    public static final class Receiving {
        private final FrameReceiver receiver;
        private final MemoryRegion region;
        private final int slots;
        private final int slotBytes;
        private final long seed;
        private final long frames;
        private final Random rhythm;
        private final MemorySegment expected;
        private final ArrayDeque<long[]> accepted = new ArrayDeque<>();
        private long begun;
        private long checked;

        public Receiving(FrameReceiver receiver, MemoryRegion region, int slots, long seed, long frames) {
            this.receiver = receiver;
            this.region = region;
            this.slots = slots;
            this.slotBytes = (int) (region.segment().byteSize() / slots);
            this.seed = seed;
            this.frames = frames;
            rhythm = new Random(~seed);
            expected = Arena.ofAuto().allocate(slotBytes);
        }

        /** Does a little work. Returns true once everything was received and compared. */
        public boolean step() {
            receiver.progress();
            while (checked < receiver.framesCompleted()) {
                compare(accepted.remove());
                checked++;
            }
            FrameHeader header = begun < frames ? receiver.poll() : null;
            if (header != null && begun - checked < slots && rhythm.nextInt(4) != 0) {
                int[] shape = shape(seed, begun, slotBytes - 64);
                assertEquals(shape[0], header.payloadBytes(), () -> "length of frame " + begun + ", seed " + seed);
                for (int i = 0; i < FrameHeader.WORDS; i++) {
                    assertEquals(seed + begun * FrameHeader.WORDS + i, header.word(i),
                            "word " + i + " of frame " + begun + ", seed " + seed);
                }
                long at = begun % slots * slotBytes + rhythm.nextInt(64);
                receiver.accept(shape[0] == 0 ? null : region, at);
                accepted.add(new long[] {begun, at, shape[0]});
                begun++;
            }
            return checked == frames;
        }

        private void compare(long[] frame) {
            fill(expected, 0, (int) frame[2], seed, frame[0]);
            long mismatch =
                    MemorySegment.mismatch(expected, 0, frame[2], region.segment(), frame[1], frame[1] + frame[2]);
            assertEquals(-1, mismatch,
                    () -> "first wrong byte of frame " + frame[0] + " of " + frame[2] + " bytes, seed " + seed);
        }
    }
}
