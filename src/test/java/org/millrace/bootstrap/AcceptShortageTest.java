package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.MillraceException;
import org.millrace.bootstrap.Acceptor.AcceptedConnection;
import org.millrace.bootstrap.Rendezvous.BootstrapListener;
import org.millrace.config.Configuration;
import org.millrace.net.connection.TlsIdentity;

/** Rank 0 has no file descriptor for the next connection. It neither spins nor fails. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class AcceptShortageTest {

    private final GroupState group = new GroupState(RankIdentity.local(0, ""), 2);
    private Selector selector;
    private ServerSocketChannel listener;
    private Acceptor acceptor;
    private boolean full;
    private boolean gone;
    private int refusals;

    @BeforeEach
    void open() throws IOException {
        selector = Selector.open();
        listener = Rendezvous.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "rendezvous", "");
        acceptor = open(
                new BootstrapListener(listener, InetAddress.getLoopbackAddress(), Secret.of("", null), null, () -> {}));
    }

    private Acceptor open(BootstrapListener from) throws IOException {
        return new Acceptor(group, from, selector, new Acceptor.Host() {
            @Override
            public void admit(AcceptedConnection peer) {
                throw new AssertionError();
            }

            @Override
            public void contradicted(int rank, String how) {
                throw new AssertionError();
            }
        }, this::next);
    }

    @AfterEach
    void close() throws IOException {
        acceptor.ended();
        selector.close();
    }

    private SocketChannel next() throws IOException {
        if (full) {
            refusals++;
            throw new IOException("Too many open files");
        }
        SocketChannel channel = listener.accept();
        if (gone && channel != null) {
            channel.close();
        }
        return channel;
    }

    private Socket client() throws IOException {
        return new Socket(InetAddress.getLoopbackAddress(), listener.socket().getLocalPort());
    }

    /** Waits until a client connects, then runs one round of the control thread. */
    private void serve() throws IOException {
        while (selector.select() == 0 || selector.selectedKeys().stream().noneMatch(SelectionKey::isAcceptable)) {
            selector.selectedKeys().clear();
        }
        selector.selectedKeys().clear();
        acceptor.accept();
        acceptor.tick();
    }

    @Test
    void noConnectionIsLookedForUntilThePauseIsOver() throws IOException {
        full = true;
        try (Socket waiting = client()) {
            serve();
            assertEquals(1, refusals);
            assertEquals(0, selector.selectNow(), "the selector would report the connection at once");
            long nanos = acceptor.nanosToNextTick();
            assertTrue(nanos > 0 && nanos <= 100_000_000, "it must be looked for again: in " + nanos + " ns");
            while (acceptor.nanosToNextTick() > 0) {
                // The test waits until the pause in accepting is over. The control thread must wait for the same
                // moment, because no other event wakes it.
                Thread.onSpinWait();
            }
            full = false;
            while (selector.selectNow() == 0) {
                acceptor.tick();
                LockSupport.parkNanos(1_000_000);
            }
            serve();
            assertTrue(waiting.isConnected());
            assertTrue(acceptor.nanosToNextTick() > 1_000_000_000, "it is let in, and has its 10 s");
        }
    }

    @Test
    void whoHasLeftAlreadyHoldsUpNobody() throws IOException {
        try (Socket first = client()) {
            serve();
            gone = true;
            client().close();
            serve();
            gone = false;
            try (Socket next = client()) {
                serve();
                assertTrue(next.isConnected() && acceptor.nanosToNextTick() > 1_000_000_000);
            }
            first.getOutputStream().write("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            while (selector.select() == 0) {
                selector.selectedKeys().clear();
            }
            assertTrue(selector.selectedKeys().iterator().next().attachment() instanceof AcceptedConnection,
                    "it is still there");
        }
    }

    /** No secret is configured in this test: only a TLS certificate identifies a rank. */
    @Test
    void aHandshakeOfTlsIsMadeWithOneOfEachAddressInTurn() throws Exception {
        acceptor.ended();
        selector.selectNow();
        TlsIdentity tls = TlsIdentity.of(Configuration.load(Map.of("MILLRACE_TLS", "1", "MILLRACE_SECRET", "any")));
        Secret none = Secret.of("", null);
        listener = Rendezvous.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "rendezvous", "");
        acceptor = open(new BootstrapListener(listener, InetAddress.getLoopbackAddress(), none, tls, () -> {}));
        List<SocketChannel> clients = new ArrayList<>();
        List<AcceptedConnection> peers = new ArrayList<>();
        try {
            for (String from : List.of("127.0.0.1", "127.0.0.1", "127.0.0.2")) {
                SocketChannel stream = SocketChannel.open();
                clients.add(tls.client(stream, none.forTls()));
                stream.bind(new InetSocketAddress(from, 0)).connect(listener.getLocalAddress());
                stream.configureBlocking(false);
                serve();
                selector.keys()
                        .stream()
                        .map(SelectionKey::attachment)
                        .filter(AcceptedConnection.class::isInstance)
                        .map(AcceptedConnection.class::cast)
                        .filter(peer -> !peers.contains(peer))
                        .forEach(peers::add);
                AcceptedConnection peer = peers.getLast();
                assertTrue(acceptor.isTurnOf(peer) && acceptor.isTurnOf(peer), "what costs next to nothing");
                while (!peer.connection.makesTlsHandshake()) {
                    clients.getLast().write(ByteBuffer.allocate(1));
                    clients.getLast().read(ByteBuffer.allocate(1));
                    peer.connection.serve(message -> {});
                }
            }
            assertEquals(List.of(true, false, true), peers.stream().map(acceptor::isTurnOf).toList());
            acceptor.tick();
            assertTrue(acceptor.isTurnOf(peers.get(1)), "in the next round");
            assertEquals(Duration.ofMinutes(2), peers.get(1).handshake.allowed(), "a TLS handshake may take long");
        } finally {
            for (SocketChannel client : clients) {
                client.close();
            }
        }
    }

    /**
     * A rank without a free core may need minutes to send its proof, so rank 0 allows two minutes. After a wrong proof,
     * ten seconds are enough to send the reason of the refusal.
     */
    @Test
    void whoHasSaidHelloMayTakeLongForItsProof() throws IOException {
        ControlConnection connection = new ControlConnection(SocketChannel.open(listener.getLocalAddress()), selector);
        var peer = new AcceptedConnection(connection, Deadline.in(Duration.ofSeconds(10)));
        acceptor.handle(peer, new Message.Hello(new RankIdentity(1, 4242, "host"), 2, Secret.randomBytes()));
        assertEquals(Duration.ofMinutes(2), peer.handshake.allowed());
        acceptor.handle(peer, new Message.Proof(new byte[32]));
        assertEquals(Duration.ofSeconds(10), peer.handshake.allowed());
        connection.close();
    }

    @Test
    void theOldestOfTheUnprovenMakesRoomAndIsSaid() throws IOException {
        try (Socket oldest = client()) {
            serve();
            full = true;
            try (Socket next = client()) {
                serve();
                selector.selectNow(); // the system closes the channel only after the selector has released the channel
                assertEquals(-1, oldest.getInputStream().read());
                assertTrue(next.isConnected());
            }
        }
        String message = assertThrows(MillraceException.class,
                () -> group.awaitComplete(Deadline.in(Duration.ofMillis(1)), "here")).getMessage();
        assertTrue(
                message.contains("; refused meanwhile: ")
                        && message.endsWith("no other connection could be accepted beside it: Too many open files"),
                message);
    }
}
