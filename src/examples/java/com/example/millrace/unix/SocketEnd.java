package com.example.millrace.unix;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.channels.Channel;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ProxyOp;
import org.millrace.transport.EndRequest;
import org.millrace.transport.TransportEnd;

/** What both ends have: memory for the device, operations to come, and a socket. */
abstract class SocketEnd implements TransportEnd {

    final EndRequest request;
    final Queue<ProxyOp> operations = new ConcurrentLinkedQueue<>();
    private Arena arena;
    private ConnectionInfo info;
    private SocketChannel socket;

    SocketEnd(EndRequest request) {
        this.request = request;
    }

    /** Step 2, the proxy's set-up: memory for the device. */
    @Override
    public void proxySetup() {
        arena = Arena.ofShared();
        info = ConnectionInfo.allocate(arena, request.settings().layout(), request.settings().firstStep());
    }

    /** Step 3, the proxy's connect: called until it says true, because nothing here may wait. */
    @Override
    public boolean proxyConnect(byte[] peer) {
        try {
            socket = open(peer);
            if (socket != null) {
                socket.configureBlocking(false);
            }
            return socket != null;
        } catch (IOException e) {
            throw new UncheckedIOException("Unix-domain socket of " + request.name() + ": " + e.getMessage(), e);
        }
    }

    /** The socket to the peer, or null if it is not there yet. */
    abstract SocketChannel open(byte[] peer) throws IOException;

    @Override
    public boolean connect(byte[] peer) {
        return true;
    }

    @Override
    public ConnectionInfo info() {
        return info;
    }

    @Override
    public void announce(ProxyOp op) {
        operations.add(op);
    }

    /** Step 4, progress: who does it. */
    @Override
    public List<ProxyConnection> proxyProgress() {
        return List.of(progress(info, socket));
    }

    abstract ProxyConnection progress(ConnectionInfo memory, SocketChannel connected);

    /** Step 5, clean-up: whatever is there, however far the end had come. */
    @Override
    public void proxyFree() {
        close(socket);
        if (arena != null) {
            arena.close();
            arena = null;
        }
    }

    @Override
    public void free() {
        // all of it is the proxy's
    }

    static void close(Channel channel) {
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
