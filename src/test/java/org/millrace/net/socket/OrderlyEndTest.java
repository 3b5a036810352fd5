package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.TestOptions;

/** A connection that is closed on purpose does not count as lost, even with unread data in its sockets. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class OrderlyEndTest {

    private static final int BYTES = 1000;
    /** Payload size in bytes, more than the limit for copies. */
    private static final int LONG_BYTES = 100_000;
    /**
     * Number of frames, several times the number that one acknowledgement covers. Receive buffers are so small that the
     * sender's socket buffers hold most frames.
     */
    private static final int FRAMES = 200;
    private static final int ROUNDS = 30;
    /** Number of rounds under TLS, where each round begins with a handshake. */
    private static final int TLS_ROUNDS = 6;

    /**
     * Returns options with a reconnect deadline beyond the test's timeout. A test that waits for this deadline fails.
     */
    private static SocketOptions options(boolean tls) {
        SocketOptions options = TestOptions.buffers(1 << 20, 4096).withReconnectDeadline(Duration.ofHours(1));
        return tls ? options.withTls(SocketNetworkTlsTest.IDENTITY) : options;
    }

    private static FrameHeader header(int word) {
        FrameHeader header = new FrameHeader();
        header.word(0, word);
        header.payloadBytes(BYTES);
        return header;
    }

    private static void send(Connected ends, MemoryRegion memory) {
        for (int frame = 0; frame < FRAMES; frame++) {
            while (!ends.sender().offer(header(frame), memory, 0)) {
                ends.sender().progress();
            }
        }
        while (ends.sender().framesCompleted() < FRAMES) {
            ends.sender().progress();
        }
    }

    private static void receive(Connected ends, MemoryRegion memory, int from, int to) {
        for (int frame = from; frame < to; frame++) {
            FrameHeader header = ends.receiver().poll();
            while (header == null) {
                header = ends.receiver().poll();
            }
            assertEquals(frame, header.word(0));
            ends.receiver().accept(memory, 0);
            while (ends.receiver().framesCompleted() <= frame) {
                ends.receiver().progress();
            }
        }
    }

    private static void isClosed(ConnectionException end) {
        assertInstanceOf(PeerClosedException.class, end, end.getMessage());
    }

    /** The sender's socket holds unread acknowledgements when the sender closes, and more arrive later. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aSenderThatClosesBeforeItReadsAcknowledgementsLosesNothing(boolean tls) {
        int rounds = tls ? TLS_ROUNDS : ROUNDS;
        try (Arena arena = Arena.ofShared(); SocketNetwork network = new SocketNetwork(options(tls))) {
            MemoryRegion memory = network.register(arena.allocate(BYTES));
            for (int round = 0; round < rounds; round++) {
                try (Connected ends = Connected.make(network, network)) {
                    send(ends, memory);
                    receive(ends, memory, 0, round * FRAMES / rounds);
                    ends.sender().close();
                    receive(ends, memory, round * FRAMES / rounds, FRAMES);
                    isClosed(Connected.failureOf(ends.receiver()::poll));
                }
            }
        }
    }

    /**
     * The sender must not reuse a frame's memory before the acknowledgement. The receiver closes when it has received
     * the frames, before it has acknowledged them.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aReceiverThatClosesWhenItHasAllSaysThatItHas(boolean tls) {
        try (Arena arena = Arena.ofShared();
                SocketNetwork network = new SocketNetwork(options(tls));
                Connected ends = Connected.make(network, network)) {
            MemoryRegion memory = network.register(arena.allocate(LONG_BYTES));
            sendLong(ends, memory);
            ends.receiver().close();
            isClosed(Connected.failureOf(ends.sender()::progress));
            assertEquals(1, ends.sender().framesCompleted());
        }
    }

    /**
     * A single frame requests no acknowledgement. If no other frame follows, the sender requests the acknowledgement by
     * a separate message. The receiver sends the acknowledgement when its owner calls {@code poll} or {@code progress}.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aFrameThatNoneFollowsIsAcknowledged(boolean polls) {
        try (Arena arena = Arena.ofShared();
                SocketNetwork network = new SocketNetwork(options(false));
                Connected ends = Connected.make(network, network)) {
            sendLong(ends, network.register(arena.allocate(LONG_BYTES)));
            while (ends.sender().framesCompleted() < 1) {
                ends.sender().progress();
                if (polls) {
                    assertNull(ends.receiver().poll());
                } else {
                    ends.receiver().progress();
                }
            }
        }
    }

    private static void sendLong(Connected ends, MemoryRegion memory) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(LONG_BYTES);
        assertTrue(ends.sender().offer(header, memory, 0));
        while (ends.receiver().poll() == null) {
            ends.sender().progress();
        }
        ends.receiver().accept(memory, 0);
        while (ends.receiver().framesCompleted() < 1) {
            ends.sender().progress();
            ends.receiver().progress();
        }
        assertEquals(0, ends.sender().framesCompleted());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aReceiverThatClosesBeforeItReadsAllTellsTheSenderAtOnce(boolean tls) {
        int rounds = tls ? TLS_ROUNDS : ROUNDS;
        try (Arena arena = Arena.ofShared(); SocketNetwork network = new SocketNetwork(options(tls))) {
            MemoryRegion memory = network.register(arena.allocate(BYTES));
            for (int round = 0; round < rounds; round++) {
                try (Connected ends = Connected.make(network, network)) {
                    send(ends, memory);
                    receive(ends, memory, 0, round * FRAMES / rounds);
                    ends.receiver().close();
                    isClosed(Connected.failureOf(ends.sender()::progress));
                }
            }
        }
    }

    /**
     * The receiver's shutdown message is lost with the stream. The sender learns of the shutdown when it requests
     * another stream.
     */
    @Test
    void aSenderThatFindsItsStreamCutIsToldThatTheReceiverWasClosed() {
        try (SocketNetwork network = new SocketNetwork(options(false));
                Connected ends = Connected.make(network, network)) {
            ends.receiver().close();
            ((FrameSender.Railed) ends.sender()).cutRail(0);
            isClosed(Connected.failureOf(ends.sender()::progress));
        }
    }

    @Test
    void aReceiverThatFindsItsStreamCutIsToldThatTheSenderWasClosed() {
        try (SocketNetwork network = new SocketNetwork(options(false));
                Connected ends = Connected.make(network, network)) {
            ends.sender().close();
            ((FrameSender.Railed) ends.receiver()).cutRail(0);
            isClosed(Connected.failureOf(ends.receiver()::poll));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void bothMayCloseAtOnce(boolean tls) throws Exception {
        int rounds = tls ? TLS_ROUNDS : ROUNDS;
        OpenSockets before = OpenSockets.now();
        try (Arena arena = Arena.ofShared();
                SocketNetwork one = new SocketNetwork(options(tls));
                SocketNetwork other = new SocketNetwork(options(tls))) {
            MemoryRegion out = one.register(arena.allocate(BYTES));
            MemoryRegion in = other.register(arena.allocate(BYTES));
            for (int round = 0; round < rounds; round++) {
                try (Connected ends = Connected.make(one, other)) {
                    send(ends, out);
                    receive(ends, in, 0, round * FRAMES / rounds);
                    Thread closer = Thread.ofPlatform().start(ends.sender()::close);
                    ends.receiver().close();
                    closer.join();
                }
            }
        }
        assertEquals(0, before.opened());
    }

    /** Senders without a stream are closed one after the other. All closes share one waiting time. */
    @Test
    void sendersThatAreClosedWithoutAStreamGiveUpSoon() throws IOException {
        Reconnector reconnector = Reconnector.shared(options(false)); // the network below uses this reconnector
        try (Arena arena = Arena.ofShared(); SocketNetwork network = new SocketNetwork(options(false))) {
            MemoryRegion memory = network.register(arena.allocate(BYTES));
            List<Connected> all = new ArrayList<>();
            for (int i = 0; i < 2 * ROUNDS; i++) {
                Connected ends = Connected.make(network, network);
                all.add(ends);
                send(ends, memory);
                ((FrameSender.Railed) ends.sender()).cutRail(0);
            }
            int waiting = 0;
            for (Connected ends : all) {
                waiting += reconnector.mayWait() ? 1 : 0;
                ends.sender().close();
            }
            assertTrue(waiting < all.size() / 10, waiting + " closes waited");
            all.forEach(Connected::close);
        } finally {
            reconnector.close();
        }
    }
}
