package org.millrace.engine.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.MillraceException;
import org.millrace.engine.bootstrap.Rendezvous.BootstrapListener;

/** Rank 0 without a file descriptor for the next connection: it neither spins nor gives up. */
@Timeout(60)
class AcceptShortageTest {

    private final GroupState group = new GroupState(RankIdentity.local(0), 2);
    private Selector selector;
    private ServerSocketChannel listener;
    private Acceptor acceptor;
    private boolean full;
    private int refusals;

    @BeforeEach
    void open() throws IOException {
        selector = Selector.open();
        listener = Rendezvous.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        acceptor = new Acceptor(group,
                new BootstrapListener(listener, InetAddress.getLoopbackAddress(), Secret.of("", null), null, () -> {}),
                selector, new Acceptor.Host() {
                    @Override
                    public void admit(Acceptor.AcceptedConnection peer) {
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
        return listener.accept();
    }

    private Socket stranger() throws IOException {
        return new Socket(InetAddress.getLoopbackAddress(), listener.socket().getLocalPort());
    }

    /** One round of the control thread, which finds a connection. */
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
        try (Socket waiting = stranger()) {
            serve();
            assertEquals(1, refusals);
            assertEquals(0, selector.selectNow(), "the selector would report the connection at once");
            long nanos = acceptor.nanosToNextTick();
            assertTrue(nanos > 0 && nanos <= 100_000_000, "it must be looked for again: in " + nanos + " ns");
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

    /** Of a rank that gets no core; what it is refused for is said at once. */
    @Test
    void whoHasSaidHelloMayTakeLongForItsProof() throws IOException {
        ControlConnection connection = new ControlConnection(SocketChannel.open(listener.getLocalAddress()), selector);
        var peer = new Acceptor.AcceptedConnection(connection, Deadline.in(Duration.ofSeconds(10)));
        acceptor.handle(peer, new Message.Hello(1, 2, 4242, "host", Secret.randomBytes()));
        assertEquals(Duration.ofMinutes(2), peer.handshake.allowed());
        acceptor.handle(peer, new Message.Proof(new byte[32]));
        assertEquals(Duration.ofSeconds(10), peer.handshake.allowed());
        connection.close();
    }

    @Test
    void theOldestStrangerMakesRoomAndIsSaid() throws IOException {
        try (Socket oldest = stranger()) {
            serve();
            full = true;
            try (Socket next = stranger()) {
                serve();
                selector.selectNow(); // its channel is closed in earnest when the selector has forgotten it
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
