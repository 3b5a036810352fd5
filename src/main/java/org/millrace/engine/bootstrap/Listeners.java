package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;

/** Listening sockets. */
final class Listeners {

    /** All ranks of a large group come at the same moment. */
    private static final int BACKLOG = 1024;

    private Listeners() {}

    static ServerSocketChannel bind(InetSocketAddress address) throws IOException {
        ServerSocketChannel listener = ServerSocketChannel.open();
        try {
            return listener.bind(address, BACKLOG);
        } catch (IOException | RuntimeException e) {
            listener.close();
            throw e;
        }
    }
}
