package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.connection.HandshakeReply;

/** A sending end that knows the secret, and sends exactly the test's bytes on any stream. */
public final class RawPeer implements AutoCloseable {

    private final Socket[] streams;
    private final FrameReceiver receiver;

    public RawPeer(Listener listener, int streamCount, int threshold) throws IOException {
        ConnectionKey key = Connected.newKey();
        Pending<FrameReceiver> expected = listener.expect(key);
        InetSocketAddress address = AddressFormat.SOCKET.decode(listener.address());
        streams = new Socket[streamCount];
        for (int stream = 0; stream < streamCount; stream++) {
            streams[stream] = new Socket(address.getAddress(), address.getPort());
            streams[stream].setTcpNoDelay(true);
            send(stream,
                    new StreamHello(threshold, 1, stream, streamCount, 0, 1, 16)
                            .encode(AddressFormat.secret(listener.address()), key, null)
                            .array());
        }
        receiver = accepted(expected, streams[0].getOutputStream());
        for (Socket stream : streams) {
            byte[] answer = stream.getInputStream().readNBytes(HandshakeReply.BYTES + StreamHello.RESUME_BYTES);
            assertEquals(HandshakeReply.ACCEPTED,
                    HandshakeReply.decode(ByteBuffer.wrap(answer).order(ByteOrder.LITTLE_ENDIAN)));
        }
    }

    /**
     * Waits until the listener has answered, and writes the client's confirmation to the first stream. Returns the
     * receiver.
     */
    static FrameReceiver accepted(Pending<FrameReceiver> expected, OutputStream first) throws IOException {
        while (!((SocketAccept) expected).isAnswered()) {
            assertNull(expected.poll());
        }
        first.write(HandshakeReply.ACCEPTED.encode(StreamHello.FORMAT).array());
        FrameReceiver made = null;
        while (made == null) {
            made = expected.poll();
        }
        return made;
    }

    public FrameReceiver receiver() {
        return receiver;
    }

    public Socket stream(int stream) {
        return streams[stream];
    }

    public void send(int stream, byte[] bytes) throws IOException {
        streams[stream].getOutputStream().write(bytes);
    }

    /** Returns the header of a frame's payload. */
    public static ByteBuffer header(long frame, int payloadBytes) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(payloadBytes);
        ByteBuffer bytes = ByteBuffer.allocate(PieceFormat.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        PieceFormat.encode(HeaderFormat.TYPE_PIECE, header, frame, 0, payloadBytes, bytes, 0);
        return bytes;
    }

    /** Returns the shutdown message of a sender that has sent the given number of frames. */
    public static byte[] shutdown(long frames) {
        ByteBuffer bytes = ByteBuffer.allocate(PieceFormat.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        PieceFormat.encodeShutdown(frames, null, bytes, 0);
        return bytes.array();
    }

    @Override
    public void close() throws IOException {
        for (Socket stream : streams) {
            stream.close();
        }
    }
}
