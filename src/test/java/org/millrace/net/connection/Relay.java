package org.millrace.net.connection;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;

/** A relay between two processes. It sees all their data, and may change it. */
public final class Relay implements AutoCloseable {

    private final ServerSocket server;
    private final InetSocketAddress to;
    private final ByteArrayOutputStream seen = new ByteArrayOutputStream();
    private final List<Socket> sockets = new ArrayList<>();
    private final AtomicInteger toBreak = new AtomicInteger();
    private volatile UnaryOperator<byte[]> change = bytes -> bytes;
    private volatile int segmentBytes = 1 << 16;

    public Relay(InetSocketAddress to) throws IOException {
        this(InetAddress.getLoopbackAddress(), to);
    }

    /** Starts a relay at an address of this host. */
    public Relay(InetAddress at, InetSocketAddress to) throws IOException {
        server = new ServerSocket(0, 16, at);
        this.to = to;
        start(this::accept);
    }

    /** Sets a function that changes all later data of the connecting side. */
    public void change(UnaryOperator<byte[]> how) {
        change = how;
    }

    /** Sets the maximum number of bytes that the relay writes at once, for later data of both sides. */
    public void split(int bytes) {
        segmentBytes = bytes;
    }

    /** Closes the next connections as soon as they are made, as an overloaded listener does. */
    public void breakNext(int count) {
        toBreak.set(count);
    }

    /** Returns the number of future connections that the relay still has to close. */
    public int leftToBreak() {
        return toBreak.get();
    }

    /** Resets all connections and discards all data in flight. Returns the number of closed sockets. */
    public synchronized int cut() throws IOException {
        int count = sockets.size();
        for (Socket socket : sockets) {
            // SO_LINGER 0 makes each close a reset. It is set on all sockets before the first close, because after a
            // close a copying thread closes the other socket of its connection.
            socket.setSoLinger(true, 0);
        }
        sockets.forEach(Relay::closeQuietly);
        sockets.clear();
        return count;
    }

    public InetSocketAddress address() {
        return (InetSocketAddress) server.getLocalSocketAddress();
    }

    /** Returns all data of both directions so far. */
    public synchronized byte[] seen() {
        return seen.toByteArray();
    }

    private static void start(Runnable run) {
        Thread.ofPlatform().daemon().name("test-relay").start(run);
    }

    private void accept() {
        try {
            while (true) {
                Socket near = server.accept();
                if (toBreak.get() > 0) {
                    toBreak.decrementAndGet();
                    closeQuietly(near);
                    continue;
                }
                Socket far = reached(near);
                if (far == null) {
                    continue;
                }
                near.setTcpNoDelay(true);
                far.setTcpNoDelay(true);
                synchronized (this) {
                    sockets.add(near);
                    sockets.add(far);
                }
                start(() -> carry(near, far, true));
                start(() -> carry(far, near, false));
            }
        } catch (IOException closed) {
            // the test has closed the relay
        }
    }

    /** Connects to the target for a client. If the target does not listen yet, closes the client and returns null. */
    private Socket reached(Socket near) {
        try {
            return new Socket(to.getAddress(), to.getPort());
        } catch (IOException nobody) {
            closeQuietly(near);
            return null;
        }
    }

    private void carry(Socket from, Socket target, boolean changes) {
        byte[] bytes = new byte[1 << 16];
        try {
            for (int read = from.getInputStream().read(bytes); read >= 0; read = from.getInputStream().read(bytes)) {
                byte[] said = Arrays.copyOf(bytes, read);
                synchronized (this) {
                    seen.writeBytes(said);
                }
                byte[] sent = changes ? change.apply(said) : said;
                for (int at = 0, length; at < sent.length; at += length) {
                    length = Math.min(segmentBytes, sent.length - at);
                    target.getOutputStream().write(sent, at, length);
                }
            }
            target.shutdownOutput();
        } catch (IOException | UncheckedIOException closed) {
            closeQuietly(from);
            closeQuietly(target);
        }
    }

    private static void closeQuietly(Socket socket) {
        try {
            socket.close();
        } catch (IOException ignored) {
            // The socket is closed.
        }
    }

    @Override
    public synchronized void close() throws IOException {
        server.close();
        sockets.forEach(Relay::closeQuietly);
    }
}
