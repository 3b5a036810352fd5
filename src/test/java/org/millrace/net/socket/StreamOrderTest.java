package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;

/** What a receiver shows when its streams are not equally fast. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StreamOrderTest {

    /** Of a payload of 8192 bytes, 4096 go on each of two streams. */
    private static final int BYTES = 2 * HeaderFormat.PART_ALIGNMENT;

    private final Arena arena = Arena.ofShared();
    private final SocketNetwork network = new SocketNetwork(SocketOptions.defaults().withAddresses("lo", null, null));
    private final MemoryRegion memory = network.register(arena.allocate(2 * BYTES));
    private RawPeer peer;
    private FrameReceiver receiver;

    @BeforeEach
    void sendHalfAFrame() throws IOException {
        peer = new RawPeer(network.listen(), 2, BYTES);
        receiver = peer.receiver();
        peer.send(0, RawPeer.header(BYTES).array());
        peer.send(0, new byte[BYTES / 2]);
        while (receiver.poll() == null) {
            Thread.onSpinWait();
        }
        receiver.accept(memory, 0);
    }

    @AfterEach
    void close() throws IOException {
        peer.close();
        network.close();
        arena.close();
    }

    private FrameHeader pollAndProgressFor(int rounds) {
        for (int i = 0; i < rounds; i++) {
            receiver.progress();
            FrameHeader header = receiver.poll();
            if (header != null) {
                return header;
            }
        }
        return null;
    }

    private void sendTheOtherHalf() throws IOException {
        byte[] half = new byte[BYTES / 2];
        java.util.Arrays.fill(half, (byte) 9);
        peer.send(1, half);
    }

    @Test
    void theNextHeaderShowsWhileAPayloadIsStillArrivingOnAnotherStream() throws IOException {
        peer.send(0, RawPeer.header(0).array());
        while (receiver.poll() == null) {
            receiver.progress();
        }
        receiver.accept(null, 0);
        receiver.progress();
        // The empty frame is whole, but it is not counted before the one that came first.
        assertEquals(0, receiver.framesCompleted());
        sendTheOtherHalf();
        while (receiver.framesCompleted() < 2) {
            receiver.progress();
        }
        assertEquals(9, memory.segment().get(ValueLayout.JAVA_BYTE, BYTES - 1));
    }

    @Test
    void aShutdownCountsWhenThePayloadsBeforeItAreHere() throws IOException {
        peer.send(0, RawPeer.shutdown());
        assertNull(pollAndProgressFor(10_000));
        sendTheOtherHalf();
        while (receiver.framesCompleted() < 1) {
            assertNull(receiver.poll());
            receiver.progress();
        }
        assertInstanceOf(PeerClosedException.class, Connected.failureOf(receiver::poll));
    }

    @Test
    void aStreamThatEndsBeforeItsPartIsALossThoughTheOtherShutDown() throws IOException {
        peer.send(0, RawPeer.shutdown());
        peer.stream(1).close();
        ConnectionException end = Connected.failureOf(() -> assertNull(pollAndProgressFor(1)));
        assertFalse(end instanceof PeerClosedException, end.getMessage());
    }

    @Test
    void noHeaderShowsBeforeStream0IsThroughWithItsPart() throws IOException {
        sendTheOtherHalf();
        while (receiver.framesCompleted() < 1) {
            receiver.progress();
        }
        peer.send(0, RawPeer.header(BYTES).array());
        peer.send(0, new byte[10]);
        while (receiver.poll() == null) {
            receiver.progress();
        }
        receiver.accept(memory, BYTES);
        peer.send(0, new byte[BYTES / 2 - 10]);
        peer.send(0, RawPeer.header(0).array());
        for (int i = 0; i < 1000; i++) {
            assertNull(receiver.poll(), "what comes next on stream 0 is payload");
        }
        FrameHeader next = null;
        while (next == null) {
            next = pollAndProgressFor(1);
        }
        assertEquals(0, next.payloadBytes());
    }
}
