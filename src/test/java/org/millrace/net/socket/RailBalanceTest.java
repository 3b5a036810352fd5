package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;

/**
 * The load of each rail follows its throughput. Time is measured in steps, so that runs differ only in the content of
 * the socket buffers of the operating system.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RailBalanceTest {

    private static final int FRAME_BYTES = 1 << 20;
    private static final int WINDOW = 8;
    private static final int STEP_BYTES = 20_000;
    private static final long STEP_NANOS = 10_000;

    private final FrameHeader header = new FrameHeader();
    private long offered;
    private long accepted;
    private int frameBytes = FRAME_BYTES;
    private int inFlight = WINDOW;

    /** Sends frames while the rails carry the given number of bytes per step. Returns the number of steps. */
    private long send(RelayedRails ends, MemoryRegion memory, int frames, int... bytesPerStep) throws IOException {
        long last = ends.receiver.framesCompleted() + frames;
        header.payloadBytes(frameBytes);
        long steps = 0;
        while (ends.receiver.framesCompleted() < last || ends.sender.framesCompleted() < last) {
            ends.nanos += STEP_NANOS;
            while (offered < last && offered - ends.sender.framesCompleted() < inFlight
                    && ends.sender.offer(header, memory, 0)) {
                offered++;
            }
            ends.sender.progress();
            for (int rail = 0; rail < bytesPerStep.length; rail++) {
                ends.carry(rail, bytesPerStep[rail]);
            }
            ends.receiver.progress();
            while (accepted < last && ends.receiver.poll() != null) {
                ends.receiver.accept(memory, FRAME_BYTES);
                accepted++;
            }
            assertTrue(++steps < 1_000_000, "no end");
        }
        return steps;
    }

    private long[] share(RelayedRails ends, MemoryRegion memory, int frames, int... bytesPerStep) throws IOException {
        long[] before = new long[bytesPerStep.length];
        for (int rail = 0; rail < before.length; rail++) {
            before[rail] = ends.carried(rail);
        }
        long steps = send(ends, memory, frames, bytesPerStep);
        long[] result = new long[before.length + 1];
        for (int rail = 0; rail < before.length; rail++) {
            result[rail] = ends.carried(rail) - before[rail];
        }
        result[before.length] = steps;
        return result;
    }

    @Test
    void equalRailsCarryTheSame() throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 64 << 10, WINDOW)) {
            MemoryRegion memory = ends.register(arena.allocate(2 * FRAME_BYTES));
            long[] carried = share(ends, memory, 50, STEP_BYTES, STEP_BYTES);
            String what = java.util.Arrays.toString(carried);
            assertTrue(Math.abs(carried[0] - carried[1]) < (carried[0] + carried[1]) / 10, what);
            assertTrue(carried[2] < 1.3 * 50 * FRAME_BYTES / (2 * STEP_BYTES), what);
        }
    }

    @Test
    void aRailOfATenthOfTheSpeedCarriesATenthAndHoldsNothingBack() throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 64 << 10, WINDOW)) {
            MemoryRegion memory = ends.register(arena.allocate(2 * FRAME_BYTES));
            send(ends, memory, 10, STEP_BYTES, STEP_BYTES / 10);
            long[] carried = share(ends, memory, 50, STEP_BYTES, STEP_BYTES / 10);
            String what = java.util.Arrays.toString(carried);
            assertTrue(carried[1] < carried[0] / 7 && carried[1] > carried[0] / 20, what);
            assertTrue(carried[2] < 1.3 * 50 * FRAME_BYTES / (1.1 * STEP_BYTES), what);
            // From now on both rails are equally fast. Both soon carry the same number of bytes.
            send(ends, memory, 50, STEP_BYTES, STEP_BYTES);
            carried = share(ends, memory, 50, STEP_BYTES, STEP_BYTES);
            assertTrue(Math.abs(carried[0] - carried[1]) < (carried[0] + carried[1]) / 10,
                    java.util.Arrays.toString(carried));
        }
    }

    @Test
    void aSlowRailDoesNotHoldSingleFramesBackEither() throws IOException {
        frameBytes = 256 << 10;
        inFlight = 1;
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 64 << 10, WINDOW)) {
            MemoryRegion memory = ends.register(arena.allocate(2 * FRAME_BYTES));
            send(ends, memory, 20, STEP_BYTES, STEP_BYTES / 10);
            long[] carried = share(ends, memory, 100, STEP_BYTES, STEP_BYTES / 10);
            long alone = 100L * frameBytes / STEP_BYTES;
            assertTrue(carried[2] < 1.5 * alone,
                    java.util.Arrays.toString(carried) + ", the fast rail alone: " + alone);
        }
    }

    @Test
    void framesGoOnWhileARailStandsStillAndItIsGivenUpInTime() throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 64 << 10, WINDOW)) {
            MemoryRegion memory = ends.register(arena.allocate(2 * FRAME_BYTES));
            send(ends, memory, 5, STEP_BYTES, STEP_BYTES);
            long[] carried = share(ends, memory, 50, STEP_BYTES, 0);
            assertEquals(0, carried[1]);
            assertTrue(carried[2] < 1.5 * 50 * FRAME_BYTES / STEP_BYTES, java.util.Arrays.toString(carried));
            assertEquals(2, ends.sender.railsLeft());
            ends.nanos += 11_000_000_000L;
            send(ends, memory, 10, STEP_BYTES, 0);
            assertEquals(1, ends.sender.railsLeft());
        }
    }

    /** The network's silence of several seconds must not count as a measurement of a rail's speed. */
    @Test
    void aRailThatStoodStillBeforeHelpsOneThatStandsStillNow() throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 64 << 10, WINDOW)) {
            MemoryRegion memory = ends.register(arena.allocate(2 * FRAME_BYTES));
            send(ends, memory, 20, STEP_BYTES, STEP_BYTES);
            for (int cut = 0; cut < 3; cut++) {
                send(ends, memory, 1, 0, STEP_BYTES);
                ends.nanos += 3_000_000_000L;
                send(ends, memory, 1, STEP_BYTES, STEP_BYTES);
            }
            assertEquals(2, ends.sender.railsLeft());
            frameBytes = 24 << 10;
            inFlight = 1;
            send(ends, memory, 20, STEP_BYTES, STEP_BYTES);
            long steps = send(ends, memory, 20, STEP_BYTES, 0);
            assertTrue(steps < 1_000_000_000 / STEP_NANOS, steps + " steps");
        }
    }

    /** Empty frames add no bytes to a rail's load, but must not wait for a stalled rail either. */
    @Test
    void emptyFramesGoOnWhileARailStandsStill() throws IOException {
        frameBytes = 0;
        for (int still = 0; still < 2; still++) {
            try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 64 << 10, WINDOW)) {
                MemoryRegion memory = ends.register(arena.allocate(2 * FRAME_BYTES));
                offered = accepted = 0;
                send(ends, memory, 20, STEP_BYTES, STEP_BYTES);
                send(ends, memory, 20, still == 0 ? 0 : STEP_BYTES, still == 1 ? 0 : STEP_BYTES);
            }
        }
    }

    @Test
    void shortFramesThatWaitTogetherTakeOneRail() throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 64 << 10, WINDOW)) {
            MemoryRegion memory = ends.register(arena.allocate(2 * FRAME_BYTES));
            frameBytes = 64;
            send(ends, memory, 20, STEP_BYTES, STEP_BYTES);
            long[] carried = share(ends, memory, 200, STEP_BYTES, STEP_BYTES);
            String what = java.util.Arrays.toString(carried);
            assertEquals(0, Math.min(carried[0], carried[1]), what);
            assertEquals(200L * (frameBytes + PieceFormat.BYTES), Math.max(carried[0], carried[1]), what);
        }
    }

    @Test
    void shortFramesTakeTheRailThatDeliversThemSooner() throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 64 << 10, WINDOW)) {
            MemoryRegion memory = ends.register(arena.allocate(2 * FRAME_BYTES));
            frameBytes = 64;
            inFlight = 1;
            send(ends, memory, 20, 10, STEP_BYTES);
            long[] carried = share(ends, memory, 200, 10, STEP_BYTES);
            assertEquals(0, carried[0], java.util.Arrays.toString(carried));
            // From now on the fast rail stalls. All data uses the slow rail after the frame in flight has timed out.
            carried = share(ends, memory, 200, STEP_BYTES, 0);
            assertEquals(0, carried[1], java.util.Arrays.toString(carried));
            assertTrue(carried[2] < 4 * 200 + 100_000_000 / STEP_NANOS, java.util.Arrays.toString(carried));
        }
    }

    /** The round-trip time of short frames must not count as a measurement of the rail's throughput. */
    @Test
    void shortFramesDoNotMakeTheirRailLookSlow() throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 64 << 10, WINDOW)) {
            MemoryRegion memory = ends.register(arena.allocate(2 * FRAME_BYTES));
            send(ends, memory, 20, STEP_BYTES, STEP_BYTES);
            frameBytes = 64;
            inFlight = 1;
            send(ends, memory, 5_000, STEP_BYTES, STEP_BYTES);
            frameBytes = FRAME_BYTES;
            inFlight = WINDOW;
            long[] carried = share(ends, memory, 10, STEP_BYTES, STEP_BYTES);
            String what = java.util.Arrays.toString(carried);
            assertTrue(Math.abs(carried[0] - carried[1]) < (carried[0] + carried[1]) / 10, what);
        }
    }

    @Test
    void smallFramesAreNotDivided() {
        Pieces pieces = Pieces.of(256 << 10, 16);
        assertEquals(1, pieces.count(0));
        assertEquals(1, pieces.count(128 << 10));
        assertEquals(2, pieces.count((128 << 10) + 1));
        assertEquals(8192, pieces.count(HeaderFormat.MAX_PAYLOAD_BYTES));
    }
}
