package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.Level;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.Warnings;

/** An end closes before its peer has received all data. The data is on rails with different delays. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RailShutdownTest {

    /**
     * Payload size in bytes. Shorter frames would all use one rail or would be copied. Copied frames count as sent
     * before they are acknowledged.
     */
    private static final int BYTES = StagedOutput.WHOLE_PAYLOAD_BYTES + 500;
    private static final int THRESHOLD = 4 * BYTES;
    private static final int PASSES = 1_000_000;

    private static void bothFramesArrive(RelayedRails ends, int rails, Arena arena) throws IOException {
        MemoryRegion memory = ends.register(arena.allocate(BYTES));
        FrameHeader header = new FrameHeader();
        header.payloadBytes(BYTES);
        for (int frame = 0; frame < 2; frame++) {
            assertTrue(ends.sender.offer(header, memory, 0));
        }
        for (int pass = 0; ends.receiver.framesCompleted() < 2; pass++) {
            assertTrue(pass < PASSES, "the frames do not arrive");
            ends.sender.progress();
            for (int rail = 0; rail < rails; rail++) {
                ends.carryData(rail, 2 * BYTES);
            }
            if (ends.receiver.poll() != null) {
                ends.receiver.accept(memory, 0);
            }
            ends.receiver.progress();
        }
        for (int rail = 0; rail < rails; rail++) {
            assertTrue(ends.carried(rail) > BYTES, "rail " + rail + " carried a frame");
        }
        assertEquals(0, ends.sender.framesCompleted(), "the sender has heard nothing yet");
    }

    /** With two rails, the sender reads the shutdown message on one rail before the acknowledgements on the other. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void whatWasAcknowledgedBeforeTheShutdownIsCounted(int rails) throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(rails, THRESHOLD, 4)) {
            bothFramesArrive(ends, rails, arena);
            ends.receiver.close();
            everythingWasAcknowledged(ends, rails);
        }
    }

    /** The shutdown message on one rail acknowledges all frames, including the frames of the other rail. */
    @Test
    void theLastWordsOfOneRailTellOfAllFrames() throws IOException {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, THRESHOLD, 4)) {
            bothFramesArrive(ends, 2, arena);
            ends.receiver.close();
            everythingWasAcknowledged(ends, 1);
        }
    }

    /** Every sender logs the number of bytes that each rail carried, even if the peer has closed first. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aSenderTellsWhatItsRailsHaveDelivered(boolean peerLeavesFirst) throws IOException {
        try (Arena arena = Arena.ofShared();
                RelayedRails ends = new RelayedRails(2, THRESHOLD, 4);
                Warnings told = new Warnings(SocketSender.class.getName(), Level.INFO)) {
            bothFramesArrive(ends, 2, arena);
            if (peerLeavesFirst) {
                ends.receiver.close();
                everythingWasAcknowledged(ends, 2);
            }
            ends.sender.close();
            assertEquals(1, told.all().stream().filter(text -> text.contains("bytes delivered over rail 0")).count(),
                    told.all().toString());
        }
    }

    /**
     * When the first rail is reset, the peer's shutdown message is still unread on the second rail. The peer therefore
     * counts as closed, and not as lost.
     */
    @Test
    void aRailThatEndsWithTheConnectionIsNoOutage() throws IOException {
        try (RelayedRails ends = new RelayedRails(2, THRESHOLD, 4);
                Warnings warnings = new Warnings(Reconnector.Outage.class.getName())) {
            ends.sender.close();
            while (ends.carried(1) == 0) {
                ends.carry(1, BYTES);
            }
            ends.cut(0, true);
            ConnectionException end = Connected.failureOf(ends.receiver::poll);
            assertInstanceOf(PeerClosedException.class, end, end.getMessage());
            assertEquals(List.of(), warnings.all());
        }
    }

    private static void everythingWasAcknowledged(RelayedRails ends, int rails) {
        ConnectionException end = Connected.failureOf(() -> {
            carry(ends, rails);
            ends.sender.progress();
        });
        assertInstanceOf(PeerClosedException.class, end, end.getMessage());
        assertEquals(2, ends.sender.framesCompleted(), end.getMessage());
        assertTrue(end.getMessage().contains("after 2 of 2 frames were acknowledged"), end.getMessage());
    }

    /**
     * Carries the data of the first {@code rails} rails. Rail 0 comes last, so that the shutdown message on rail 0
     * arrives after the data of the other rails.
     */
    private static void carry(RelayedRails ends, int rails) {
        try {
            for (int rail = rails - 1; rail >= 0; rail--) {
                ends.carry(rail, 2 * BYTES);
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
