package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.EOFException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.bootstrap.Message.Received;
import org.millrace.net.socket.Reconnector;
import org.millrace.net.socket.SocketOptions;

/** Many messages of an authenticated peer use no more stack than one message. */
@Timeout(60)
class ControlConnectionTest {

    private static final int MESSAGES = 100_000;
    private static final long STACK_BYTES = 256 << 10;

    private final AtomicReference<Throwable> thrown = new AtomicReference<>();

    @Test
    void acknowledgementsInARowDoNotFillTheStack() throws Exception {
        Reconnector reconnector = Reconnector.shared(SocketOptions.defaults());
        try (ServerSocketChannel server = ServerSocketChannel.open();
                Selector selector = Selector.open();
                SocketChannel peer = SocketChannel.open()) {
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            peer.connect(server.getLocalAddress());
            ControlConnection connection = new ControlConnection(server.accept(), selector);
            connection.sealOutgoing(new FrameSeal(new byte[32]));
            connection.offerRecovery(reconnector);
            Thread reader = new Thread(null, () -> read(connection, selector), "reader", STACK_BYTES);
            reader.setDaemon(true);
            reader.start();
            write(peer);
            reader.join();
            connection.close();
        } finally {
            reconnector.close();
        }
        assertNull(thrown.get());
    }

    private static void write(SocketChannel peer) throws Exception {
        ByteBuffer one = MessageCodec.encode(new Received(0));
        ByteBuffer all = ByteBuffer.allocate(MESSAGES * one.remaining());
        while (all.hasRemaining()) {
            all.put(one.duplicate());
        }
        all.flip();
        while (all.hasRemaining()) {
            peer.write(all);
        }
        peer.shutdownOutput();
    }

    private void read(ControlConnection connection, Selector selector) {
        try {
            while (true) {
                selector.select();
                selector.selectedKeys().clear();
                connection.serve(message -> {
                    throw new AssertionError(message + " is none of the owner's");
                });
            }
        } catch (EOFException end) {
            // all messages were read
        } catch (Throwable failure) {
            thrown.set(failure);
        }
    }
}
