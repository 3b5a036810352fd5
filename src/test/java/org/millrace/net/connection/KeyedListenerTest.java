package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Pending;

/** A listener in a process without a free file descriptor. */
@Timeout(60)
class KeyedListenerTest {

    private final ConnectionKey key = new ConnectionKey(1, 2);
    private Server server;
    private Keyed listener;

    @BeforeEach
    void open() throws IOException {
        listen(Duration.ofMinutes(10));
    }

    @AfterEach
    void close() throws IOException {
        listener.close();
        server.close();
    }

    private void listen(Duration handshake) throws IOException {
        server = new Server();
        listener = new Keyed(server, handshake);
    }

    @Test
    void theOldestStrangerGivesItsDescriptor() throws IOException {
        Pending<FrameReceiver> pending = listener.expect(key);
        try (Socket oldest = server.stranger(); Socket second = server.stranger()) {
            while (server.accepted < 2) {
                assertNull(pending.poll());
            }
            server.full = true;
            assertNull(pending.poll());
            assertEquals(1, listener.dropped());
            assertEquals(-1, oldest.getInputStream().read());
            server.full = false;
            try (Socket third = server.stranger()) {
                while (server.accepted < 3) {
                    assertNull(pending.poll());
                }
                assertEquals(1, listener.dropped());
                assertTrue(second.isConnected() && third.isConnected());
            }
        }
    }

    /** A client sends half of its hello after the deadline. No thread polled meanwhile, so the hello is accepted. */
    @Test
    void whatWasSaidWhileNobodyLookedIsHeardInTime() throws IOException {
        close();
        Duration handshake = Duration.ofMillis(50);
        listen(handshake);
        Pending<FrameReceiver> pending = listener.expect(key);
        try (Socket peer = server.stranger()) {
            byte[] hello = Keyed.FORMAT.encode(new byte[HelloFormat.SECRET_BYTES], key).array();
            peer.getOutputStream().write(hello, 0, 20);
            while (server.accepted < 1) {
                assertNull(pending.poll());
            }
            for (long begin = System.nanoTime(); System.nanoTime() - begin < 2 * handshake.toNanos();) {
                Thread.onSpinWait();
            }
            assertNull(pending.poll(), "this look is after its deadline, and finds no more than before");
            peer.getOutputStream().write(hello, 20, hello.length - 20);
            while (listener.came == 0) {
                assertNull(pending.poll());
                assertEquals(0, listener.dropped());
            }
        }
    }

    /**
     * A client that has proved the secret is allowed to exceed the deadline in its TLS handshake, for example because
     * no core is free. A client that has not proved the secret is dropped at the deadline.
     */
    @Test
    void aTlsHandshakeMayTakeLongerThanTheDeadline() throws Exception {
        close();
        listen(Duration.ofMillis(50));
        listener.tls = TlsIdentity.ofSecret("of the ranks");
        Pending<FrameReceiver> pending = listener.expect(key);
        ByteBuffer hello = Keyed.FORMAT.encode(new byte[HelloFormat.SECRET_BYTES], key);
        try (SocketChannel stream = SocketChannel.open(server.real.getLocalAddress());
                SocketChannel client = listener.tls.client(stream, new byte[16])) {
            stream.configureBlocking(false);
            while (!((TlsChannel) client).isChallengePassed()) {
                client.write(hello);
                assertNull(pending.poll());
            }
            try (Socket stranger = server.stranger()) {
                // if the listener dropped the client instead of this stranger, the stranger's read would time out
                stranger.setSoTimeout(10_000);
                while (listener.dropped() == 0) {
                    assertNull(pending.poll());
                }
                assertEquals(-1, stranger.getInputStream().read());
            }
            while (listener.came == 0) {
                client.write(hello);
                assertNull(pending.poll());
                assertEquals(1, listener.dropped());
            }
        }
    }

    /** A listener that runs for months must not keep every key that it ever had. */
    @Test
    void onlyTheLatestKeysAreRemembered() {
        for (int i = 0; i <= KeyedListener.MAX_USED_KEYS; i++) {
            listener.expect(new ConnectionKey(7, i)).close();
        }
        listener.expect(new ConnectionKey(7, 0)).close();
        assertThrows(IllegalArgumentException.class,
                () -> listener.expect(new ConnectionKey(7, KeyedListener.MAX_USED_KEYS)));
        Pending<FrameReceiver> lives = listener.expect(key);
        for (int i = 0; i <= KeyedListener.MAX_USED_KEYS; i++) {
            listener.expect(new ConnectionKey(8, i)).close();
        }
        assertThrows(IllegalArgumentException.class, () -> listener.expect(key), "one that is waited for is known");
        lives.close();
    }

    @Test
    void itPausesWhereNobodyHasOneToGive() throws IOException {
        Pending<FrameReceiver> pending = listener.expect(key);
        server.full = true;
        assertNull(pending.poll());
        assertNull(pending.poll());
        assertEquals(1, server.refused, "it asks the system again later only");
        server.full = false;
        try (Socket stranger = server.stranger()) {
            while (server.accepted < 1) {
                assertNull(pending.poll());
            }
            assertTrue(stranger.isConnected());
        }
    }

    @Test
    void itFailsWhereThatDoesNotEnd() throws IOException {
        close();
        listen(Duration.ofMillis(1));
        Pending<FrameReceiver> pending = listener.expect(key);
        server.full = true;
        assertNull(pending.poll());
        String message = assertThrows(ConnectionException.class, () -> {
            while (true) {
                pending.poll();
            }
        }).getMessage();
        assertTrue(message.contains("cannot accept connections: Too many open files"), message);
        assertTrue(server.refused > 1);
    }

    /** A listener that counts clients with a complete hello, and never creates a connection. */
    private static final class Keyed extends KeyedListener<IncomingHello> {

        private int came;
        private TlsIdentity tls;

        private static final HelloFormat FORMAT = new HelloFormat("MILLTEST", 1, HelloFormat.COMMON_BYTES + 64);

        Keyed(ServerSocketChannel server, Duration handshake) {
            super(new OpenResources("test"), "test listener", new byte[16], handshake, List.of(server));
        }

        @Override
        public byte[] address() {
            return new byte[0];
        }

        @Override
        protected ExpectedConnection<IncomingHello> newExpected(ConnectionKey key) {
            return new ExpectedConnection<>(this, key) {
                @Override
                protected void check(IncomingHello client) {
                    came++;
                }

                @Override
                protected boolean isComplete() {
                    return false;
                }

                @Override
                protected FrameReceiver accept() {
                    throw new AssertionError();
                }
            };
        }

        @Override
        protected IncomingHello newClient(SocketChannel channel, long deadline) throws IOException {
            channel.configureBlocking(false);
            SocketChannel stream = tls == null ? channel : tls.server(channel, new byte[16]);
            return new IncomingHello(stream, FORMAT, "stranger", deadline) {
                @Override
                protected void decode(ByteBuffer hello) {
                    // This test needs only the key of the hello.
                }
            };
        }
    }

    /** A listening socket that fails while {@code full} is set, as on a system without a free descriptor. */
    private static final class Server extends ServerSocketChannel {

        private final ServerSocketChannel real = ServerSocketChannel.open();
        private boolean full;
        private int refused;
        private int accepted;

        Server() throws IOException {
            super(SelectorProvider.provider());
            real.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            real.configureBlocking(false);
        }

        Socket stranger() throws IOException {
            return new Socket(InetAddress.getLoopbackAddress(), real.socket().getLocalPort());
        }

        @Override
        public SocketChannel accept() throws IOException {
            if (full) {
                refused++;
                throw new IOException("Too many open files");
            }
            SocketChannel channel = real.accept();
            accepted += channel == null ? 0 : 1;
            return channel;
        }

        @Override
        protected void implCloseSelectableChannel() throws IOException {
            real.close();
        }

        @Override
        protected void implConfigureBlocking(boolean block) {
            throw new AssertionError();
        }

        @Override
        public ServerSocketChannel bind(SocketAddress local, int backlog) {
            throw new AssertionError();
        }

        @Override
        public <T> ServerSocketChannel setOption(SocketOption<T> name, T value) {
            throw new AssertionError();
        }

        @Override
        public <T> T getOption(SocketOption<T> name) {
            throw new AssertionError();
        }

        @Override
        public Set<SocketOption<?>> supportedOptions() {
            return Set.of();
        }

        @Override
        public ServerSocket socket() {
            return real.socket();
        }

        @Override
        public SocketAddress getLocalAddress() throws IOException {
            return real.getLocalAddress();
        }
    }
}
