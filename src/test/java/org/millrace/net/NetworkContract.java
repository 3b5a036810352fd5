package org.millrace.net;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/**
 * Requirements for every {@link Network}. This class covers connections that are created, refused, closed and lost.
 * {@link FrameContract} covers frames. A test of an implementation extends this class and creates the network.
 */
public abstract class NetworkContract extends FrameContract {

    private static final int LONG_PAYLOAD = 600 << 10;
    /** Number of calls of {@code progress} after which every sent message has been received. */
    private static final int SEVERAL = 10_000;

    @Test
    void connectionsOfOneListenerDoNotMix() {
        Listener listener = network.listen();
        try (Connected a = Connected.make(network, listener, Connected.newKey());
                Connected b = Connected.make(network, listener, Connected.newKey())) {
            a.sender().offer(header(0, 'a'), null, 0);
            b.sender().offer(header(0, 'b'), null, 0);
            assertEquals('b', b.nextHeader().word(0));
            assertEquals('a', a.nextHeader().word(0));
        }
    }

    /**
     * Two networks may share resources for their connections, but no connection may depend on the order of creation.
     */
    @Test
    void aConnectionGoesOnWhenOneThatWasMadeBesideItIsClosed() {
        for (boolean firstIsClosed : new boolean[] {true, false}) {
            Network from = newNetwork();
            Network to = newNetwork();
            try (MemoryRegion out = from.register(Arena.ofAuto().allocate(LONG_PAYLOAD));
                    MemoryRegion in = to.register(Arena.ofAuto().allocate(LONG_PAYLOAD))) {
                Connected a = Connected.make(from, to);
                Connected b = Connected.make(from, to);
                for (int i = 0; i < SEVERAL; i++) {
                    a.sender().progress();
                    b.sender().progress();
                }
                // Connection `a` receives all its frames before connection `b` receives any frame, although the senders
                // have alternated.
                for (int i = 0; i < SEVERAL; i++) {
                    a.receiver().progress();
                }
                for (int i = 0; i < SEVERAL; i++) {
                    b.receiver().progress();
                }
                for (Connected each : new Connected[] {b, a}) {
                    each.sender().offer(header(LONG_PAYLOAD), out, 0);
                    each.nextHeader();
                    each.receiver().accept(in, 0);
                    each.until(() -> each.receiver().framesCompleted() == 1);
                }
                (firstIsClosed ? a : b).close();
                Connected left = firstIsClosed ? b : a;
                left.sender().offer(header(LONG_PAYLOAD), out, 0);
                left.nextHeader();
                left.receiver().accept(in, 0);
                left.until(() -> left.sender().framesCompleted() == 2 && left.receiver().framesCompleted() == 2);
                left.close();
            } finally {
                Connected.closeAll(from, to);
            }
        }
    }

    @Test
    void aPeerMayConnectBeforeItIsExpected() {
        Listener listener = network.listen();
        ConnectionKey first = Connected.newKey();
        ConnectionKey second = Connected.newKey();
        Pending<FrameSender> early = network.connect(listener.address(), second);
        try (Connected other = Connected.make(network, listener, first)) {
            for (int i = 0; i < 100; i++) {
                assertNull(early.poll());
            }
            Pending<FrameReceiver> expected = listener.expect(second);
            Connected.await(listener, early, expected);
            assertNotNull(other);
        }
    }

    @Test
    void aKeyIsExpectedOnce() {
        try (Listener listener = network.listen()) {
            ConnectionKey key = Connected.newKey();
            listener.expect(key);
            assertThrows(IllegalArgumentException.class, () -> listener.expect(key));
        }
    }

    @Test
    void twoListenersHaveTwoAddressesOfTheLengthThatIsAgreedOn() {
        try (Listener a = network.listen(); Listener b = network.listen()) {
            assertEquals(Listener.ADDRESS_BYTES, a.address().length);
            assertNotEquals(java.util.HexFormat.of().formatHex(a.address()),
                    java.util.HexFormat.of().formatHex(b.address()));
        }
    }

    @Test
    void bytesThatAreNoAddressAreRefused() {
        assertThrows(ConnectionException.class,
                () -> network.connect(new byte[Listener.ADDRESS_BYTES], Connected.newKey()));
        assertThrows(ConnectionException.class, () -> network.connect(new byte[3], Connected.newKey()));
    }

    /**
     * Creates the network of a client that has a wrong secret. This network may give up sooner than the network under
     * test.
     */
    protected Network newStranger() {
        return newNetwork();
    }

    @Test
    void aSecretThatIsNotTheListenersIsRefused() {
        try (Network client = newStranger(); Listener listener = network.listen(); Listener other = network.listen()) {
            ConnectionKey key = Connected.newKey();
            Pending<FrameReceiver> accepting = listener.expect(key);
            byte[] address = listener.address();
            byte[] stranger = other.address();
            // The network chooses the position of the secret within an address. An address with any changed part must
            // not connect.
            for (int i = 20; i < address.length; i++) {
                address[i] ^= (byte) (address[i] ^ stranger[i]);
            }
            ConnectionException refusal = Connected.failureOf(() -> {
                Pending<FrameSender> connecting = client.connect(address, key);
                while (connecting.poll() == null) {
                    assertNull(accepting.poll());
                }
            });
            assertTrue(refusal.getMessage().contains("secret"), refusal.getMessage());
        }
    }

    @Test
    void whatTheSenderSentBeforeItClosedStillArrives() {
        MemoryRegion out = memory(1 << 20);
        MemoryRegion in = memory(2 << 20);
        try (Connected ends = Connected.make(network, network)) {
            out.segment().fill((byte) 7);
            ends.sender().offer(header(300_000, 1), out, 0);
            ends.sender().offer(header(30, 2), out, 0);
            assertEquals(1, ends.nextHeader().word(0));
            ends.receiver().accept(in, 0);
            ends.until(() -> ends.sender().framesCompleted() == 2);
            ends.sender().close();
            while (ends.receiver().poll() == null) {
                ends.receiver().progress();
            }
            assertEquals(2, ends.receiver().poll().word(0));
            ends.receiver().accept(in, 1 << 20);
            while (ends.receiver().framesCompleted() < 2) {
                ends.receiver().progress();
            }
            assertEquals(7, in.segment().get(ValueLayout.JAVA_BYTE, 299_999));
            assertEquals(7, in.segment().get(ValueLayout.JAVA_BYTE, (1 << 20) + 29));
            assertInstanceOf(PeerClosedException.class, Connected.failureOf(ends.receiver()::poll));
            assertInstanceOf(PeerClosedException.class, Connected.failureOf(ends.receiver()::progress));
        }
    }

    @Test
    void aSenderLearnsThatItsReceiverClosed() {
        try (Connected ends = Connected.make(network, network)) {
            ends.receiver().close();
            ConnectionException end = Connected.failureOf(ends.sender()::progress);
            assertInstanceOf(PeerClosedException.class, end);
            assertTrue(end.getMessage().contains("closed by the peer"), end.getMessage());
            assertThrows(PeerClosedException.class, () -> ends.sender().offer(header(0), null, 0));
        }
    }

    @Test
    void aSenderThatIsBusyLearnsThatItsReceiverClosed() {
        MemoryRegion out = memory(1 << 20);
        try (Connected ends = Connected.make(network, network)) {
            ends.sender().offer(header(1 << 20), out, 0);
            ends.sender().progress();
            ends.receiver().close();
            ConnectionException failure = Connected.failureOf(() -> {
                ends.sender().offer(header(1 << 20), out, 0);
                ends.sender().progress();
            });
            assertInstanceOf(PeerClosedException.class, failure, () -> failure + ", " + failure.getCause());
        }
    }

    @Test
    void anAbortedSenderIsALostConnection() {
        try (Connected ends = Connected.make(network, network)) {
            ends.sender().abort();
            ConnectionException end = Connected.failureOf(ends.receiver()::poll);
            assertFalse(end instanceof PeerClosedException, end.getMessage());
            assertTrue(end.getMessage().contains("lost"), end.getMessage());
        }
    }

    @Test
    void closingTwiceIsClosingOnceAndCallsAfterwardsSaySo() {
        Connected ends = Connected.make(network, network);
        ends.close();
        ends.close();
        ends.sender().abort();
        assertTrue(assertThrows(ConnectionException.class, () -> ends.sender().offer(header(0), null, 0)).getMessage()
                .contains("this side"));
        assertThrows(ConnectionException.class, () -> ends.sender().progress());
        assertThrows(ConnectionException.class, () -> ends.receiver().poll());
        assertThrows(ConnectionException.class, () -> ends.receiver().progress());
        assertThrows(ConnectionException.class, () -> ends.listener().expect(Connected.newKey()));
        network.close();
        network.close();
        assertThrows(IllegalStateException.class, network::listen);
    }

    @Test
    void closingTheListenerEndsWhatIsPendingAndNotWhatIsMade() {
        Listener listener = network.listen();
        Connected ends = Connected.make(network, listener, Connected.newKey());
        Pending<FrameReceiver> pending = listener.expect(Connected.newKey());
        assertNull(pending.poll());
        listener.close();
        assertThrows(ConnectionException.class, pending::poll);
        ends.sender().offer(header(0, 9), null, 0);
        assertEquals(9, ends.nextHeader().word(0));
        ends.close();
    }
}
