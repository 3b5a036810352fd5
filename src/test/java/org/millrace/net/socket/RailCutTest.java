package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.RandomFrames;

/** Rails that are lost in the middle of frames. No frame is lost or duplicated, and the order is kept. */
@Timeout(value = 300, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class RailCutTest {

    private static final int SLOTS = 6;
    private static final int SLOT_BYTES = 200_000;

    @Test
    void hundredsOfRandomCutsLoseNothing() throws IOException {
        int cuts = 0;
        for (long seed = 1; seed <= 300; seed++) {
            cuts += exchangeWithCuts(seed);
        }
        assertTrue(cuts >= 400, cuts + " rails were cut");
    }

    /**
     * Sends random frames over 2 to 4 rails of random speeds. All rails except one are cut at random moments in one of
     * three ways. Returns the number of cut rails.
     */
    private static int exchangeWithCuts(long seed) throws IOException {
        Random random = new Random(seed);
        int rails = 2 + random.nextInt(3);
        int frames = 30;
        int keep = random.nextInt(rails);
        int[] cutAt = new int[rails];
        for (int rail = 0; rail < rails; rail++) {
            cutAt[rail] = rail == keep ? Integer.MAX_VALUE : random.nextInt(60);
        }
        boolean[] cut = new boolean[rails];
        try (Arena arena = Arena.ofShared();
                RelayedRails ends = new RelayedRails(rails, 20_000, 1 + random.nextInt(8))) {
            var sending = new RandomFrames.Sending(ends.sender, ends.register(arena.allocate(SLOTS * SLOT_BYTES)),
                    SLOTS, seed, frames);
            var receiving = new RandomFrames.Receiving(ends.receiver, ends.register(arena.allocate(SLOTS * SLOT_BYTES)),
                    SLOTS, seed, frames);
            boolean sent = false;
            boolean received = false;
            for (int step = 0; !sent || !received; step++) {
                ends.nanos += 10_000;
                sent = sending.step();
                received = receiving.step();
                for (int rail = 0; rail < rails; rail++) {
                    ends.carry(rail, random.nextInt(30_000));
                    if (step == cutAt[rail]) {
                        cut[rail] = true;
                        switch (random.nextInt(3)) {
                            case 0 -> ends.cut(rail, true);
                            case 1 -> ends.cut(rail, false);
                            default -> ends.sender.cutRail(rail);
                        }
                    }
                }
                assertTrue(step < 1_000_000, "no end, seed " + seed);
            }
            assertEquals(frames, ends.receiver.framesCompleted(), "seed " + seed);
        } catch (ConnectionException | AssertionError e) {
            throw new AssertionError("seed " + seed + ": " + e.getMessage(), e);
        }
        int count = 0;
        for (boolean each : cut) {
            count += each ? 1 : 0;
        }
        return count;
    }

    /**
     * The error names the rail that was lost last. If the receiver detects both losses at once, its error names both
     * rails, because it cannot know the order of the losses.
     */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"0|1|true|rail, rail 1 (relay 1)", "1|0|true|rail, rail 0 (relay 0)",
                    "1|0|false|rails, rail 0 (relay 0) and rail 1 (relay 1)"})
    void theLossOfTheLastRailIsTheConnectionsAndSaysWhich(int first, int last, boolean seen, String named)
            throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 20_000, 4)) {
            MemoryRegion memory = ends.register(arena.allocate(400_000));
            assertTrue(ends.sender.offer(header(200_000), memory, 0));
            while (ends.receiver.poll() == null) {
                ends.sender.progress();
                ends.carry(0, 10_000);
                ends.carry(1, 10_000);
            }
            ends.receiver.accept(memory, 200_000);
            ends.cut(first, true);
            if (seen) {
                ends.sender.progress();
                ends.receiver.progress();
            }
            ends.cut(last, false);
            ConnectionException here = Connected.failureOf(ends.sender::progress);
            ConnectionException there = Connected.failureOf(ends.receiver::progress);
            for (ConnectionException each : new ConnectionException[] {here, there}) {
                assertFalse(each instanceof PeerClosedException, each.getMessage());
                assertTrue(each.getMessage().contains("under test: connection lost")
                        && each.getMessage().contains("on its last rail"), each.getMessage());
            }
            assertTrue(there.getMessage().contains("on its last " + named + ","), there.getMessage());
            assertTrue(!seen || here.getMessage().contains("on its last " + named + ","), here.getMessage());
            assertEquals(0, ends.sender.framesCompleted());
            assertEquals(0, ends.receiver.framesCompleted());
        }
    }

    /** The sender detects the cut of an idle rail before the later cut of another rail. */
    @Test
    void theSenderNamesTheRailThatWasCutLast() throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 20_000, 4)) {
            assertTrue(ends.sender.offer(header(1000), ends.register(arena.allocate(1000)), 0));
            ends.sender.cutRail(1);
            ends.sender.progress();
            ends.sender.cutRail(0);
            ConnectionException lost = Connected.failureOf(ends.sender::progress);
            assertTrue(lost.getMessage().contains("on its last rail, rail 0 (relay 0)"), lost.getMessage());
        }
    }

    private static FrameHeader header(long payloadBytes) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(payloadBytes);
        return header;
    }
}
