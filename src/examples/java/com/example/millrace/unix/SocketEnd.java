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
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.transport.EndRequest;
import org.millrace.transport.TransportEnd;

/** Common part of both ends: memory for the device, pending operations, and a socket. */
abstract class SocketEnd implements TransportEnd {

    final EndRequest request;
    final Queue<ProxyOp> operations = new ConcurrentLinkedQueue<>();
    private Arena arena;
    private ConnectionInfo info;
    private SocketChannel socket;

    SocketEnd(EndRequest request) {
        this.request = request;
    }

    /** Step 2, the proxy's setup: allocates memory for the device. */
    @Override
    public void proxySetup() {
        arena = Arena.ofShared();
        info = ConnectionInfo.allocate(arena, request.settings().layout(), request.settings().firstStep());
    }

    /** Step 3, the proxy's connect: called until it returns true, because it must not wait. */
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

    /** Returns the socket to the peer, or null if it is not connected yet. */
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

    /** Step 4, progress: returns the object that makes progress. */
    @Override
    public List<ProxyConnection> proxyProgress() {
        return List.of(progress(info, socket));
    }

    abstract ProxyConnection progress(ConnectionInfo memory, SocketChannel connected);

    /** Step 5, cleanup: frees all existing resources, after any of the earlier steps. */
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
        // the proxy owns all resources
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
