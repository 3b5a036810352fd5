package org.millrace.net.socket.handshake;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.base.DropLog;
import org.millrace.net.base.HandshakeException;
import org.millrace.net.base.HandshakeReply;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.stream.ChannelSetup;
import org.millrace.net.socket.stream.SocketOptions;

/**
 * Accepts streams, and sorts them into the connections that are expected. There is no thread: whoever polls one of the
 * pending connections moves all of them.
 *
 * <p>
 * A stream whose hello is in order but whose key nobody expects yet is kept until its deadline, as a peer may be faster
 * than we are.
 */
public final class SocketListener implements Listener {

    private static final int BACKLOG = 4096;
    /** Streams that have not said who they are: further ones wait in the system's queue. */
    private static final int MAX_STRANGERS = 256;

    private final SocketNetwork network;
    /** One for each rail. */
    private final List<ServerSocketChannel> servers = new ArrayList<>();
    private final List<InetSocketAddress> addresses = new ArrayList<>();
    private final String name;
    private final byte[] address;
    private final byte[] secret = new byte[AddressFormat.SECRET_BYTES];
    private final DropLog drops;
    private final Map<ConnectionKey, SocketAccept> expected = new HashMap<>();
    private final Set<ConnectionKey> usedKeys = new HashSet<>();
    private final List<IncomingStream> strangers = new ArrayList<>();
    private final List<IncomingStream> early = new ArrayList<>();
    private boolean closed;

    public SocketListener(SocketNetwork network) {
        this.network = network;
        SocketOptions options = network.options();
        for (InetAddress host : network.announced()) {
            try {
                servers.add(open(options, host));
                addresses.add((InetSocketAddress) servers.getLast().getLocalAddress());
            } catch (IOException e) {
                closeServers();
                throw new ConnectionException("cannot listen on " + host.getHostAddress() + ": " + e.getMessage()
                        + "; choose another with MILLRACE_SOCKET_ADDRESSES or NCCL_SOCKET_IFNAME", e);
            }
        }
        new SecureRandom().nextBytes(secret);
        address = AddressFormat.encode(addresses.getFirst(), secret, addresses.size());
        name = "listener " + addresses.stream()
                .map(bound -> bound.getAddress().getHostAddress() + " port " + bound.getPort())
                .collect(Collectors.joining(", "));
        drops = new DropLog(name);
    }

    private static ServerSocketChannel open(SocketOptions options, InetAddress host) throws IOException {
        ServerSocketChannel server = ServerSocketChannel.open();
        try {
            server.configureBlocking(false);
            if (options.receiveBufferBytes() > 0) {
                // Before the bind: accepted streams inherit it, and the window's scale is agreed on while they connect.
                server.setOption(StandardSocketOptions.SO_RCVBUF, options.receiveBufferBytes());
            }
            return server.bind(new InetSocketAddress(host, 0), BACKLOG);
        } catch (IOException e) {
            server.close();
            throw e;
        }
    }

    @Override
    public byte[] address() {
        return address.clone();
    }

    @Override
    public synchronized Pending<FrameReceiver> expect(ConnectionKey key) {
        checkOpen();
        if (!usedKeys.add(key)) {
            throw new IllegalArgumentException(
                    name + ": key " + key + " was expected before; a key is good for one connection");
        }
        SocketAccept connection = new SocketAccept(this, network, key);
        expected.put(key, connection);
        return connection;
    }

    /** Does what can be done for all connections without waiting. */
    synchronized void advance() {
        checkOpen();
        for (SocketAccept connection : expected.values()) {
            connection.dropDeparted(drops);
        }
        acceptStrangers();
        long now = System.nanoTime();
        for (Iterator<IncomingStream> each = strangers.iterator(); each.hasNext();) {
            IncomingStream stream = each.next();
            try {
                if (stream.readHello(secret)) {
                    each.remove();
                    if (stream.hello().isQuery()) {
                        tell(stream);
                    } else {
                        early.add(stream);
                    }
                } else if (stream.isLate(now)) {
                    throw new HandshakeException(null,
                            "it said nothing, or not all of a hello, in " + network.options().handshakeDeadline());
                }
            } catch (HandshakeException e) {
                each.remove();
                drop(stream, e);
            }
        }
        for (Iterator<IncomingStream> each = early.iterator(); each.hasNext();) {
            IncomingStream stream = each.next();
            try {
                if (sort(stream, now)) {
                    each.remove();
                }
            } catch (HandshakeException e) {
                each.remove();
                drop(stream, e);
            }
        }
    }

    private void tell(IncomingStream stream) {
        try {
            stream.tell(addresses);
        } catch (IOException gone) {
            // It left before it was told.
        }
        stream.close();
    }

    private void acceptStrangers() {
        try {
            for (ServerSocketChannel server : servers) {
                acceptStrangers(server);
            }
        } catch (IOException e) {
            throw new ConnectionException(
                    name + ": cannot accept connections: " + e.getMessage() + "; too many open files? See ulimit -n",
                    e);
        }
    }

    private void acceptStrangers(ServerSocketChannel server) throws IOException {
        while (strangers.size() < MAX_STRANGERS) {
            SocketChannel channel = server.accept();
            if (channel == null) {
                return;
            }
            try {
                ChannelSetup.apply(channel, network.options());
                strangers.add(new IncomingStream(channel, channel.getRemoteAddress(), network.handshakeDeadline()));
            } catch (IOException gone) {
                // It left before it was looked at.
                channel.close();
            }
        }
    }

    /** Gives a stream to the connection that it is for; false to keep it. */
    private boolean sort(IncomingStream stream, long now) throws HandshakeException {
        ConnectionKey key = stream.hello().key();
        SocketAccept connection = expected.get(key);
        if (connection != null) {
            // A client that begins again without one of its rails closes its streams, and comes back at once.
            connection.dropDeparted(drops);
            connection.add(stream);
            return true;
        }
        if (usedKeys.contains(key)) {
            throw new HandshakeException(HandshakeReply.KEY_TAKEN,
                    "another client connected with key " + key + ", or it was given up");
        }
        if (stream.isLate(now)) {
            throw new HandshakeException(HandshakeReply.UNKNOWN_KEY, "nobody expects key " + key);
        }
        stream.checkWaits();
        return false;
    }

    private void drop(IncomingStream stream, HandshakeException why) {
        if (why.answer() != null) {
            try {
                stream.answer(why.answer());
            } catch (IOException gone) {
                // It left before it was answered.
            }
        }
        stream.close();
        drops.dropped(stream, why.getMessage());
    }

    /** Forgets a connection that was made or given up; its key stays used. */
    synchronized void forget(ConnectionKey key) {
        expected.remove(key);
    }

    /** How many streams were dropped so far. */
    synchronized long droppedStreams() {
        return drops.count();
    }

    private void checkOpen() {
        if (closed) {
            throw new ConnectionException(name + ": was closed");
        }
    }

    private void closeServers() {
        for (ServerSocketChannel server : servers) {
            try {
                server.close();
            } catch (IOException e) {
                throw new ConnectionException("closing the listener of " + addresses + " failed: " + e.getMessage(), e);
            }
        }
    }

    @Override
    public void close() {
        List<SocketAccept> left;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            left = List.copyOf(expected.values());
            expected.clear();
            strangers.forEach(IncomingStream::close);
            early.forEach(IncomingStream::close);
            closeServers();
        }
        left.forEach(connection -> connection.end("its listener was closed"));
        network.forget(this);
    }

    @Override
    public String toString() {
        return name;
    }
}
