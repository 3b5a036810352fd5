package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.connection.OpenResources;

/** Senders that are closed while frames of a lost stream must be sent again. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CloseAfterLossTest {

    private static final int FRAMES = 60;
    private static final int FRAME_BYTES = 4_000;

    /** Before the first acknowledgement on a restored stream, the sender does not know which frames are missing. */
    @Test
    void aCloseWaitsForTheFirstAcknowledgementOnARestoredStream() throws Exception {
        Reconnector reconnector = Reconnector.shared(SocketOptions.defaults());
        SocketChannel[] lost = RelayedRails.pair();
        SocketChannel[] restored = RelayedRails.pair();
        OpenResources network = new OpenResources("network under test");
        try (ServerSocket silent = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            StreamRecovery recovery = new StreamRecovery(reconnector,
                    new ResumeFormat.Id(new ConnectionKey(5, 6), 7, false), new byte[16], new StreamRecovery.Peer[] {
                            new StreamRecovery.Peer(null, (InetSocketAddress) silent.getLocalSocketAddress())});
            SocketSender sender = new SocketSender(
                    new StreamSet(network, "sender under test", "the peer", new SocketChannel[] {lost[0]}, recovery),
                    new Rail[] {new Rail(0, "rail")}, Pieces.whole(8), System::nanoTime);
            assertTrue(sender.offer(new FrameHeader(), null, 0));
            while (sender.framesCompleted() == 0) {
                sender.progress();
            }
            sender.cutRail(0);
            sender.progress();
            recovery.made(0, new StreamRecovery.Successor(restored[0], 1, null));
            Thread closer = startClose(sender);
            ByteBuffer first = ByteBuffer.allocate(PieceFormat.Ack.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            PieceFormat.Ack.encode(PieceFormat.Ack.TYPE_ACK, 0, 0, 0, first, 0);
            restored[1].write(first);
            restored[1].configureBlocking(true);
            ByteBuffer received = ByteBuffer.allocate(2 * PieceFormat.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            new DataInputStream(restored[1].socket().getInputStream()).readFully(received.array());
            closer.join();
            assertTrue(PieceFormat.isPiece(received, 0));
            assertEquals(0, PieceFormat.frame(received, 0));
            assertTrue(HeaderFormat.is(HeaderFormat.TYPE_SHUTDOWN, received, PieceFormat.BYTES));
        } finally {
            lost[1].close();
            restored[1].close();
            network.close();
            reconnector.close();
        }
    }

    /**
     * Frames are released in order. A frame that is sent from the owner's memory is released when it is acknowledged,
     * and later frames wait for this release.
     *
     * @param firstBytes length of the first frame
     */
    @ParameterizedTest
    @ValueSource(ints = {FRAME_BYTES, 100_000})
    void aCloseWaitsUntilAnotherRailHasRoomForTheFramesOfALostRail(int firstBytes) throws Exception {
        try (Arena arena = Arena.ofShared(); RelayedRails ends = new RelayedRails(2, 20_000, FRAMES)) {
            MemoryRegion memory = ends.register(arena.allocate(firstBytes));
            FrameHeader header = new FrameHeader();
            for (int frame = 0; frame < FRAMES; frame++) {
                header.payloadBytes(frame == 0 ? firstBytes : FRAME_BYTES);
                assertTrue(ends.sender.offer(header, memory, 0));
                ends.sender.progress();
            }
            assertEquals(firstBytes == FRAME_BYTES, ends.sender.framesCompleted() > 0);
            ends.sender.cutRail(0);
            while (ends.sender.framesCompleted() == 0) {
                ends.sender.progress();
                receive(ends, memory);
            }
            Thread closer = startClose(ends.sender);
            ConnectionException end = Connected.failureOf(() -> receive(ends, memory));
            closer.join();
            assertInstanceOf(PeerClosedException.class, end);
            assertEquals(FRAMES, ends.receiver.framesCompleted());
        }
    }

    /** Lets the receiver accept the next frame, and carries some bytes of rail 1. */
    private static void receive(RelayedRails ends, MemoryRegion memory) {
        ends.receiver.progress();
        if (ends.receiver.poll() != null) {
            ends.receiver.accept(memory, 0);
        }
        try {
            ends.carry(1, 10_000);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    /** Closes the sender in a new thread. Returns the thread as soon as the thread waits or has ended. */
    private static Thread startClose(SocketSender sender) {
        Thread closer = Thread.ofPlatform().start(sender::close);
        while (closer.getState() != Thread.State.TIMED_WAITING && closer.isAlive()) {
            Thread.onSpinWait();
        }
        return closer;
    }
}
