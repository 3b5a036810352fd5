package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.RandomFrames;
import org.millrace.net.TestOptions;

/** A connection to another process, which may be killed. No files of the killed process remain. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class TwoProcessesTest {

    private static final int SLOTS = 24;
    private static final int SLOT_BYTES = 1 << 20;

    private Path directory;
    private ShmOptions options;
    private ShmNetwork network;

    @BeforeEach
    void open() throws IOException {
        // The directory is inside the machine's shared directory. It is therefore in memory, and separate from the
        // directories of other tests.
        directory = Files.createTempDirectory(ShmOptions.defaults().directory(), "two-processes-test");
        options = TestOptions.shm(directory);
        network = new ShmNetwork(options);
    }

    @AfterEach
    void nothingIsLeft() throws IOException {
        network.close();
        assertEquals(List.of(), files());
        Files.delete(directory);
    }

    private List<String> files() throws IOException {
        try (Stream<Path> all = Files.list(directory)) {
            return all.map(file -> file.getFileName().toString()).toList();
        }
    }

    @Test
    void framesComeBackAsTheyWent() throws IOException {
        try (Arena arena = Arena.ofShared(); ShmPeer peer = new ShmPeer(network, options)) {
            assertFalse(files().stream().anyMatch(name -> name.endsWith(".ring")),
                    "a ring is still there, though both sides have mapped it");
            var sending = new RandomFrames.Sending(peer.sender(),
                    network.register(arena.allocate((long) SLOTS * SLOT_BYTES, 64)), SLOTS, 5, 500);
            var receiving = new RandomFrames.Receiving(peer.receiver(),
                    network.register(arena.allocate((long) SLOTS * SLOT_BYTES, 64)), SLOTS, 5, 500);
            RandomFrames.exchange(sending, receiving);
        }
    }

    @Test
    void theEndIsAShutdownInBothDirections() throws IOException {
        ShmPeer peer = new ShmPeer(network, options);
        peer.sender().close();
        assertInstanceOf(PeerClosedException.class, Connected.failureOf(peer.receiver()::poll));
        peer.close();
        assertEquals(0, peer.process().exitValue());
    }

    @Test
    void aKilledPeerIsALostConnectionForAReceiverThatWaits() throws Exception {
        ShmPeer peer = new ShmPeer(network, options);
        peer.process().destroyForcibly();
        assertLost(Connected.failureOf(peer.receiver()::poll), peer);
        assertLost(Connected.failureOf(peer.sender()::progress), peer);
        peer.close();
    }

    @Test
    void aKilledPeerIsALostConnectionInTheMiddleOfAPayload() throws Exception {
        try (Arena arena = Arena.ofConfined()) {
            MemoryRegion memory = network.register(arena.allocate(4 << 20));
            FrameHeader header = new FrameHeader();
            header.payloadBytes(4 << 20);
            ShmPeer peer = new ShmPeer(network, options);
            ConnectionException end = Connected.failureOf(() -> {
                peer.sender().offer(header, memory, 0);
                peer.sender().progress();
                if (peer.sender().framesCompleted() == 1) {
                    peer.process().destroyForcibly();
                }
            });
            assertLost(end, peer);
            peer.close();
        }
    }

    @Test
    void anAbortedSenderIsALostConnectionForThePeer() throws Exception {
        ShmPeer peer = new ShmPeer(network, options);
        peer.sender().abort();
        assertTrue(peer.process().waitFor() != 0, "the peer throws what it did not expect");
        peer.close();
    }

    private ShmOptions readingInPlace() {
        assumeTrue(SingleCopy.isPossible(), SingleCopy::describe);
        return options.withSingleCopy(new SingleCopy(SingleCopy.Use.REQUIRED, 64));
    }

    @Test
    void largePayloadsAreReadInPlaceBothWays() throws IOException {
        ShmOptions reading = readingInPlace();
        try (Arena arena = Arena.ofShared();
                ShmNetwork ours = new ShmNetwork(reading);
                ShmPeer peer = new ShmPeer(ours, reading)) {
            MemoryRegion memory = ours.register(arena.allocate((long) SLOTS * SLOT_BYTES, 64));
            var sending = new RandomFrames.Sending(peer.sender(), memory, SLOTS, 5, 500);
            var receiving = new RandomFrames.Receiving(peer.receiver(),
                    ours.register(arena.allocate((long) SLOTS * SLOT_BYTES, 64)), SLOTS, 5, 500);
            RandomFrames.exchange(sending, receiving);
            FrameHeader header = new FrameHeader();
            header.payloadBytes(SLOT_BYTES / 16);
            peer.sender().offer(header, memory, 0);
            assertEquals(500, peer.sender().framesCompleted(), "it would be complete if it were in the ring");
            while (peer.sender().framesCompleted() == 500) {
                peer.sender().progress();
            }
        }
    }

    /**
     * The killed sender's memory no longer exists. Payloads that the sender had not copied are lost, and the receiver
     * reads no other memory instead.
     */
    @Test
    void aKilledSendersPayloadIsLost() throws Exception {
        ShmOptions reading = readingInPlace();
        try (Arena arena = Arena.ofConfined(); ShmNetwork ours = new ShmNetwork(reading)) {
            MemoryRegion memory = ours.register(arena.allocate(4 << 20));
            FrameHeader header = new FrameHeader();
            header.payloadBytes(4 << 20);
            ShmPeer peer = new ShmPeer(ours, reading);
            peer.sender().offer(header, memory, 0);
            while (peer.receiver().poll() == null) {
                peer.sender().progress();
            }
            peer.receiver().accept(memory, 0); // the receiver reads only the first of several pieces
            peer.process().destroyForcibly().waitFor();
            assertLost(Connected.failureOf(peer.receiver()::progress), peer);
            assertEquals(0, peer.receiver().framesCompleted());
            peer.close();
        }
    }

    /** The peer has switched single copy off. This process then copies the payload, and neither process fails. */
    @Test
    void aPeerThatSwitchedItOffIsSentCopies() throws IOException {
        try (Arena arena = Arena.ofConfined();
                ShmPeer peer = new ShmPeer(network, options.withSingleCopy(SingleCopy.of(Optional.of(false))))) {
            MemoryRegion memory = network.register(arena.allocate(options.pieceBytes()));
            FrameHeader header = new FrameHeader();
            header.payloadBytes(options.pieceBytes());
            peer.sender().offer(header, memory, 0);
            assertEquals(1, peer.sender().framesCompleted());
        }
    }

    /**
     * Checks that the end reports the killed peer. The peer's socket file remains. This process deletes the file, and
     * {@link #nothingIsLeft} checks the deletion.
     */
    private void assertLost(ConnectionException end, ShmPeer peer) throws InterruptedException {
        assertFalse(end instanceof PeerClosedException, end.getMessage());
        assertTrue(end.getMessage().contains("lost"), end.getMessage());
        assertTrue(end.getMessage().contains("pid " + peer.process().pid()), end.getMessage());
        peer.process().waitFor();
    }
}
