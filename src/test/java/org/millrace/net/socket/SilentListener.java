package org.millrace.net.socket;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.HelloFormat;

/** Parts of a listener's role, for tests that act as a listener themselves. */
public final class SilentListener {

    private SilentListener() {}

    /** Returns the listener's address, as a peer's handle contains it. */
    public static byte[] address(InetSocketAddress at) {
        return AddressFormat.SOCKET.encode(at, HelloFormat.newSecret(), 1);
    }

    /** Sends the reply that accepts a stream, without the bytes that usually follow this reply. */
    public static void accept(Socket client) throws IOException {
        client.getOutputStream().write(HandshakeReply.ACCEPTED.encode(StreamHello.FORMAT).array());
    }
}
