package org.millrace.net.shm.handshake;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import jdk.net.ExtendedSocketOptions;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.file.CurrentUser;
import org.millrace.net.shm.file.FileName;
import org.millrace.net.shm.file.OwnFiles;
import org.millrace.net.shm.file.ShmUnavailableException;
import org.millrace.net.shm.file.StaleFiles;
import org.millrace.net.shm.ring.RingFile;
import org.millrace.net.shm.ring.ShmConnection;

/**
 * Accepts visitors on a Unix-domain socket, and keeps them until the connection that each is for is polled. There is no
 * thread: whoever polls one of the pending connections hears all visitors.
 */
public final class ShmListener implements Listener {

    private static final Logger LOG = LogManager.getLogger(ShmListener.class);
    private static final int BACKLOG = 4096;
    /** Visitors that are not sorted yet: further ones wait in the system's queue. */
    private static final int MAX_VISITORS = 1024;

    private final ShmNetwork network;
    private final ShmAddress address;
    private final Path path;
    private final ServerSocketChannel server;
    private final Map<ConnectionKey, ShmAccept> expected = new HashMap<>();
    private final Set<ConnectionKey> usedKeys = new HashSet<>();
    private final List<Visitor> visitors = new ArrayList<>();
    private boolean unwelcomeLogged;
    private boolean closed;

    public ShmListener(ShmNetwork network, ShmAddress address) {
        this.network = network;
        this.address = address;
        path = network.options().directory().resolve(FileName.ours(address.id(), FileName.SOCKET).toString());
        try {
            server = open(path);
        } catch (IOException | UnsupportedOperationException e) {
            throw new ShmUnavailableException("cannot listen on the Unix-domain socket " + path + ": " + e
                    + "; choose another directory, with a short path, in the shared-memory options", e);
        }
        StaleFiles.sweep(network.options().directory());
    }

    private static ServerSocketChannel open(Path path) throws IOException {
        OwnFiles.madeIn(path.getParent());
        ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            server.configureBlocking(false);
            server.bind(UnixDomainSocketAddress.of(path), BACKLOG);
            Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
            return server;
        } catch (IOException e) {
            server.close();
            throw e;
        }
    }

    @Override
    public byte[] address() {
        return address.encode();
    }

    @Override
    public synchronized Pending<FrameReceiver> expect(ConnectionKey key) {
        checkOpen();
        if (!usedKeys.add(key)) {
            throw new IllegalArgumentException(
                    this + ": key " + key + " was expected before; a key is good for one connection");
        }
        ShmAccept connection = new ShmAccept(this, network, key);
        expected.put(key, connection);
        return connection;
    }

    /** Hears all visitors, and takes the one that came for a connection, if there is one. */
    synchronized Visitor take(ConnectionKey key) {
        checkOpen();
        acceptVisitors();
        long now = System.nanoTime();
        Visitor taken = null;
        for (Iterator<Visitor> each = visitors.iterator(); each.hasNext();) {
            Visitor visitor = each.next();
            try {
                visitor.read(address.secret());
                RingHello hello = visitor.hello();
                if (hello != null && taken == null && hello.key().equals(key)) {
                    taken = visitor;
                    expected.remove(key);
                    each.remove();
                } else {
                    checkMayWait(visitor, now);
                }
            } catch (Visitor.Unwelcome e) {
                each.remove();
                visitor.refuse(e);
                log(e.getMessage());
            }
        }
        return taken;
    }

    private void checkMayWait(Visitor visitor, long now) throws Visitor.Unwelcome {
        RingHello hello = visitor.hello();
        if (hello == null) {
            if (visitor.isLate(now)) {
                throw new Visitor.Unwelcome(null,
                        "it did not say who it is in " + network.options().handshakeDeadline());
            }
        } else if (!expected.containsKey(hello.key())) {
            if (usedKeys.contains(hello.key())) {
                throw new Visitor.Unwelcome(ShmHandshakeReply.KEY_TAKEN, "key " + hello.key() + " was used before");
            }
            if (visitor.isLate(now)) {
                throw new Visitor.Unwelcome(ShmHandshakeReply.UNKNOWN_KEY, "nobody expects key " + hello.key());
            }
        }
    }

    private void acceptVisitors() {
        try {
            while (visitors.size() < MAX_VISITORS) {
                SocketChannel socket = server.accept();
                if (socket == null) {
                    return;
                }
                try {
                    socket.configureBlocking(false);
                    UserPrincipal other = socket.getOption(ExtendedSocketOptions.SO_PEERCRED).user();
                    if (other.equals(CurrentUser.PRINCIPAL)) {
                        visitors.add(new Visitor(socket,
                                System.nanoTime() + network.options().handshakeDeadline().toNanos()));
                    } else {
                        ShmConnection.closeQuietly(socket);
                        log("it belongs to the user " + other + ", and this process to " + CurrentUser.PRINCIPAL);
                    }
                } catch (IOException gone) {
                    ShmConnection.closeQuietly(socket);
                }
            }
        } catch (IOException e) {
            throw new ConnectionException(
                    this + ": cannot accept connections: " + e.getMessage() + "; too many open files? See ulimit -n",
                    e);
        }
    }

    private void log(String why) {
        // One line, however many knock: whoever floods the listener must not flood the log.
        LOG.log(unwelcomeLogged ? Level.DEBUG : Level.WARN, "{} sent a visitor away: {}", this, why);
        unwelcomeLogged = true;
    }

    /** Forgets a connection that was given up; its key stays used. */
    synchronized void forget(ConnectionKey key) {
        expected.remove(key);
    }

    private void checkOpen() {
        if (closed) {
            throw new ConnectionException(this + ": was closed");
        }
    }

    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        expected.clear();
        visitors.forEach(visitor -> ShmConnection.closeQuietly(visitor.socket()));
        visitors.clear();
        ShmConnection.closeQuietly(server);
        network.forget(this);
        RingFile.delete(path);
    }

    @Override
    public String toString() {
        return "shared-memory listener " + path;
    }
}
