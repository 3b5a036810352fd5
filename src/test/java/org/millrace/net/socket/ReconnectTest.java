package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.RandomFrames;
import org.millrace.net.connection.WatchedStream;

/** Streams that are lost and replaced. No frame is lost or duplicated, and the order is kept. */
@Timeout(value = 300, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ReconnectTest {

    private static final int SLOTS = 6;
    private static final int SLOT_BYTES = 200_000;
    private static final int FRAMES = 300;

    private static SocketOptions options(int rails, int streams, boolean tls) {
        SocketOptions options = SocketOptions.defaults().withStreams(streams, 20_000);
        options = rails == 1 ? options.withAddresses("lo", null, null)
                : options.withRails(SocketNetworkRailsTest.loopbacks(rails));
        return tls ? options.withTls(SocketNetworkTlsTest.IDENTITY) : options;
    }

    /** All streams are lost repeatedly, at random moments, on either side. */
    @ParameterizedTest
    @CsvSource({"1, 1, false, 10", "1, 1, true, 3", "3, 1, false, 5", "2, 1, true, 2", "1, 3, false, 5"})
    @Tag("slow")
    void framesArriveOnceThoughStreamsAreLost(int rails, int streams, boolean tls, int connections) {
        int cuts = 0;
        try (SocketNetwork network = new SocketNetwork(options(rails, streams, tls)); Arena arena = Arena.ofShared()) {
            MemoryRegion out = network.register(arena.allocate(SLOTS * SLOT_BYTES));
            MemoryRegion in = network.register(arena.allocate(SLOTS * SLOT_BYTES));
            for (long seed = 1; seed <= connections; seed++) {
                try (Connected ends = Connected.make(network, network)) {
                    cuts += exchange(ends, out, in, seed);
                } catch (ConnectionException | AssertionError e) {
                    throw new AssertionError("seed " + seed + ": " + e.getMessage(), e);
                }
            }
        }
        assertTrue(cuts > 3 * connections, cuts + " cuts");
    }

    private static int exchange(Connected ends, MemoryRegion out, MemoryRegion in, long seed) {
        Random random = new Random(seed);
        var sending = new RandomFrames.Sending(ends.sender(), out, SLOTS, seed, FRAMES);
        var receiving = new RandomFrames.Receiving(ends.receiver(), in, SLOTS, seed, FRAMES);
        int rails = ((FrameSender.Railed) ends.sender()).rails();
        int cuts = 0;
        boolean sent = false;
        boolean received = false;
        long cutAt = random.nextInt(40);
        while (!sent || !received) {
            sent = sending.step();
            received = receiving.step();
            if (!received && ends.receiver().framesCompleted() >= cutAt) {
                cutAt += 1 + random.nextInt(60);
                cuts++;
                int first = random.nextInt(rails);
                int count = random.nextBoolean() ? rails : 1;
                for (int rail = 0; rail < count; rail++) {
                    FrameSender.Railed end =
                            (FrameSender.Railed) (random.nextBoolean() ? ends.sender() : ends.receiver());
                    end.cutRail((first + rail) % rails);
                }
            }
        }
        assertEquals(FRAMES, ends.receiver().framesCompleted());
        ends.receiver().close();
        return cuts;
    }

    /** An end that sends no data also detects the loss of a stream. The new stream carries frames, too. */
    @ParameterizedTest
    @CsvSource({"true, false", "false, false", "true, true", "false, true"})
    void anIdleConnectionComesBack(boolean bySender, boolean tls) {
        try (SocketNetwork network = new SocketNetwork(options(1, 1, tls));
                Connected ends = Connected.make(network, network)) {
            for (int round = 0; round < 3; round++) {
                ((FrameSender.Railed) (bySender ? ends.sender() : ends.receiver())).cutRail(0);
                assertTrue(ends.sender().offer(header(round), null, 0));
                assertEquals(round, ends.nextHeader().word(0));
                ends.receiver().accept(null, 0);
                int all = round + 1;
                ends.until(() -> ends.receiver().framesCompleted() == all && ends.sender().framesCompleted() == all);
            }
        }
    }

    /**
     * Either end detects that its stream has become silent. The operating system alone would retransmit for a quarter
     * of an hour. The receiver sends only acknowledgements of frames.
     */
    @ParameterizedTest
    @ValueSource(strings = {"127.0.0.1", "127.0.0.2"})
    void eitherEndLosesAStreamThatNothingComesOn(String end) throws UnknownHostException {
        SocketOptions options = SocketOptions.defaults().withAddresses("lo", null, InetAddress.getByName("127.0.0.2"));
        List<WatchedStream> before = WatchedStream.at(end);
        try (SocketNetwork network = new SocketNetwork(options); Connected ends = Connected.make(network, network)) {
            List<WatchedStream> own = new ArrayList<>(WatchedStream.at(end));
            own.removeAll(before);
            assertEquals(1, own.size());
            own.getFirst().silence();
            ends.until(() -> {
                ends.receiver().poll();
                return !own.getFirst().isOpen();
            });
            assertTrue(ends.sender().offer(header(7), null, 0));
            assertEquals(7, ends.nextHeader().word(0));
        }
    }

    /** A sender may close while it has no stream. The receiver still receives all data that was reported as sent. */
    @Test
    void aSenderThatIsClosedWithoutAStreamDeliversFirst() throws InterruptedException {
        try (SocketNetwork network = new SocketNetwork(options(1, 1, false));
                Connected ends = Connected.make(network, network)) {
            assertTrue(ends.sender().offer(header(7), null, 0));
            while (ends.sender().framesCompleted() == 0) {
                ends.sender().progress();
            }
            ((FrameSender.Railed) ends.receiver()).cutRail(0);
            ((FrameSender.Railed) ends.sender()).cutRail(0);
            Thread closer = Thread.ofPlatform().start(ends.sender()::close);
            while (ends.receiver().poll() == null) {
                ends.receiver().progress();
            }
            assertEquals(7, ends.receiver().poll().word(0));
            ends.receiver().accept(null, 0);
            assertTrue(Connected.failureOf(() -> {
                ends.receiver().progress();
                ends.receiver().poll();
            }) instanceof PeerClosedException);
            closer.join();
            assertEquals(1, ends.receiver().framesCompleted());
        }
    }

    /**
     * The receiver learns of the sender's abort when it next requests the stream, and does not wait for its deadline.
     */
    @Test
    void theReceiverLearnsThatTheSenderGaveUp() {
        try (SocketNetwork network = new SocketNetwork(options(1, 1, false));
                Connected ends = Connected.make(network, network)) {
            ((FrameSender.Railed) ends.sender()).cutRail(0);
            ends.sender().abort();
            ConnectionException lost = Connected.failureOf(ends.receiver()::poll);
            assertFalse(lost instanceof PeerClosedException, lost.getMessage());
            assertTrue(lost.getMessage().contains("has given the connection up"), lost.getMessage());
        }
    }

    /**
     * If a process's port on this host no longer exists, the process has ended. The process's peer then does not wait
     * for the deadline.
     */
    @ParameterizedTest
    @CsvSource({"true", "false"})
    void aProcessThatHasEndedIsNotWaitedFor(boolean receiverEnds) {
        // Networks with the same options share a port.
        SocketNetwork one = new SocketNetwork(options(1, 1, false).withReconnectDeadline(Duration.ofMinutes(2)));
        try (SocketNetwork other = new SocketNetwork(options(1, 1, false));
                Connected ends = receiverEnds ? Connected.make(other, one) : Connected.make(one, other)) {
            if (receiverEnds) {
                ((FrameSender.Railed) ends.receiver()).cutRail(0);
            } else {
                ends.sender().abort();
            }
            one.close();
            ConnectionException lost =
                    Connected.failureOf(receiverEnds ? ends.sender()::progress : ends.receiver()::poll);
            assertTrue(lost.getMessage().contains("process has"), lost.getMessage());
        }
    }

    /** With a deadline of zero no stream is replaced. */
    @Test
    void aDeadlineOfZeroEndsTheConnectionAtOnce() {
        try (SocketNetwork network = new SocketNetwork(options(1, 1, false).withReconnectDeadline(Duration.ZERO));
                Connected ends = Connected.make(network, network)) {
            ((FrameSender.Railed) ends.sender()).cutRail(0);
            assertTrue(Connected.failureOf(ends.sender()::progress).getMessage().contains("cut on purpose"));
            assertTrue(Connected.failureOf(ends.receiver()::poll).getMessage().contains("connection lost"));
        }
    }

    private static FrameHeader header(long word) {
        FrameHeader header = new FrameHeader();
        header.word(0, word);
        return header;
    }
}
