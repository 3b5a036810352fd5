package org.millrace.net.socket;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.HelloFormat;

/** Parts of a listener's role that a test plays itself. No listener of Millrace uses the port. */
public final class SilentListener {

    private SilentListener() {}

    /** Returns the listener's address, as a peer's handle contains it. */
    public static byte[] address(InetSocketAddress at) {
        return AddressFormat.SOCKET.encode(at, HelloFormat.newSecret(), 1);
    }

    /** Accepts a stream, and omits the bytes behind the reply. */
    public static void accept(Socket client) throws IOException {
        client.getOutputStream().write(HandshakeReply.ACCEPTED.encode(StreamHello.FORMAT).array());
    }
}
