package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.config.Configuration;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.connection.TlsIdentity;
import org.millrace.net.connection.UnprovenClient;

/** Clients without a proof of the secret use almost none of a data port's resources. */
@Timeout(60)
class UnprovenStreamTest {

    private static final int CLIENTS = 100;

    private static Socket come(InetSocketAddress to, byte[] words) throws IOException {
        Socket socket = new Socket(to.getAddress(), to.getPort());
        socket.getOutputStream().write(words);
        return socket;
    }

    /**
     * Waits until the listener has served all clients: connects one more client that sends zeros, and returns when that
     * client is dropped. The listener accepts clients in order.
     */
    private static void serve(InetSocketAddress to, Pending<FrameReceiver> pending) throws IOException {
        try (SocketChannel last = SocketChannel.open(to)) {
            last.write(ByteBuffer.allocate(64));
            last.configureBlocking(false);
            ByteBuffer answer = ByteBuffer.allocate(1);
            while (last.read(answer) == 0) {
                assertNull(pending.poll());
            }
        } catch (SocketException reset) {
            // the listener reset the stream, as it closed the stream before it had read all of this client's bytes
        }
    }

    @ParameterizedTest
    @CsvSource({"0, SILENT", "0, HALF_OPEN", "0, CLIENT_HELLO", "1, SILENT", "1, HALF_OPEN", "1, CLIENT_HELLO"})
    void whoHasShownNothingIsGivenNothing(String tls, UnprovenClient client) throws Exception {
        TlsIdentity identity =
                TlsIdentity.of(Configuration.load(Map.of("MILLRACE_TLS", tls, "MILLRACE_SECRET", "of the ranks")));
        List<Socket> clients = new ArrayList<>();
        try (SocketNetwork network =
                new SocketNetwork(SocketOptions.defaults().withAddresses("lo", null, null).withTls(identity));
                Listener listener = network.listen()) {
            InetSocketAddress to = AddressFormat.SOCKET.decode(listener.address());
            ConnectionKey key = Connected.newKey();
            Pending<FrameReceiver> expected = listener.expect(key);
            byte[] words = client.words();
            clients.add(come(to, words));
            serve(to, expected); // this call loads the classes before the measurement
            for (int i = 0; i < CLIENTS; i++) {
                clients.add(come(to, words));
            }
            long before = UnprovenClient.allocated(Thread.currentThread());
            serve(to, expected);
            long each = (UnprovenClient.allocated(Thread.currentThread()) - before) / CLIENTS;
            assertTrue(each < UnprovenClient.MAX_BYTES, "the listener allocates " + each + " bytes a client");
            Pending<FrameSender> begun = network.connect(listener.address(), key);
            Connected made = Connected.await(listener, begun, expected);
            assertEquals(0, made.receiver().framesCompleted());
        } finally {
            for (Socket socket : clients) {
                socket.close();
            }
        }
    }
}
