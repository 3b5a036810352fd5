package com.example.millrace.unix;

import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.transport.EndRequest;

/** The end that connects to the socket at the path that the peer has sent. */
final class SendEnd extends SocketEnd {

    SendEnd(EndRequest request) {
        super(request);
    }

    @Override
    public byte[] setup() {
        return new byte[0];
    }

    @Override
    SocketChannel open(byte[] peer) throws IOException {
        return SocketChannel.open(UnixDomainSocketAddress.of(new String(peer, StandardCharsets.UTF_8)));
    }

    @Override
    ProxyConnection progress(ConnectionInfo memory, SocketChannel connected) {
        return new SendProgress(request, memory, connected, operations);
    }
}
