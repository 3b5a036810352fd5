package org.millrace.net.shm.handshake;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.file.CurrentUser;
import org.millrace.net.shm.file.FileName;
import org.millrace.net.shm.file.ProcessIdentity;
import org.millrace.net.shm.file.ShmUnavailableException;
import org.millrace.net.shm.ring.RingFile;
import org.millrace.net.shm.ring.RingLayout;
import org.millrace.net.shm.ring.RingMemory;
import org.millrace.net.shm.ring.RingProducer;
import org.millrace.net.shm.ring.ShmConnection;
import org.millrace.net.shm.ring.ShmOptions;
import org.millrace.net.shm.ring.ShmSender;

/** A connection to a listener in the making: finds its socket, makes the ring, says hello, and waits for the answer. */
public final class ShmConnect implements Pending<FrameSender> {

    private final ShmNetwork network;
    private final ConnectionKey key;
    private final Path listener;
    private final ProcessIdentity peer;
    private final Path file;
    private final byte[] secret;
    private final long deadline;
    private SocketChannel socket;
    private RingMemory ring;
    /** What is still to be said; null while the socket is not connected. */
    private ByteBuffer hello;
    private ConnectionException failure;
    private boolean done;

    public ShmConnect(ShmNetwork network, ShmAddress address, ConnectionKey key) {
        this.network = network;
        this.key = key;
        ShmOptions options = network.options();
        if (address.host() != ShmAddress.thisHost()) {
            throw new ShmUnavailableException("connection " + key + ": the listener " + address
                    + " is on another host, with which no memory is shared");
        }
        listener = find(options.directory(), address);
        peer = FileName.parse(listener.getFileName().toString()).owner();
        file = options.directory().resolve(FileName.ours(new SecureRandom().nextLong(), FileName.RING).toString());
        secret = address.secret();
        deadline = System.nanoTime() + options.connectDeadline().toNanos();
    }

    private static Path find(Path directory, ShmAddress address) {
        try (DirectoryStream<Path> sockets = Files.newDirectoryStream(directory, FileName.socketGlob(address.id()))) {
            for (Path socket : sockets) {
                if (FileName.parse(socket.getFileName().toString()) != null) {
                    return socket;
                }
            }
        } catch (IOException e) {
            throw new ShmUnavailableException("cannot look for the listener " + address + " in " + directory + ": " + e,
                    e);
        }
        throw new ShmUnavailableException("the listener " + address + " has no socket in " + directory
                + ": it was closed, or its process sees another directory of that name, as one in another container does");
    }

    @Override
    public synchronized FrameSender poll() {
        if (failure != null) {
            throw failure;
        }
        if (done) {
            throw new IllegalStateException(this + ": was returned or given up before");
        }
        try {
            return advance();
        } catch (IOException e) {
            throw fail(new ShmUnavailableException(this + ": " + e.getMessage() + "; has the listener's process ended?",
                    e));
        } catch (ConnectionException e) {
            throw fail(e);
        }
    }

    private FrameSender advance() throws IOException {
        if (socket == null) {
            socket = SocketChannel.open(StandardProtocolFamily.UNIX);
            socket.configureBlocking(false);
            socket.connect(UnixDomainSocketAddress.of(listener));
        }
        if (hello == null && (socket.isConnected() || socket.finishConnect())) {
            makeRing();
        }
        if (hello != null && (!hello.hasRemaining() || sayHello())) {
            ByteBuffer answer = ByteBuffer.allocate(1);
            int read = socket.read(answer);
            if (read > 0) {
                return answered(ShmHandshakeReply.decode(answer.get(0)));
            }
            if (read < 0) {
                throw new ConnectionException(this
                        + ": the listener hung up without an answer; it was closed, or does not take this process for a peer");
            }
        }
        if (System.nanoTime() - deadline > 0) {
            throw new ConnectionException(this + ": not made in " + network.options().connectDeadline()
                    + ", still waiting for " + (hello == null ? "the socket to connect" : "an answer")
                    + "; is the peer alive and accepting?");
        }
        return null;
    }

    private void makeRing() throws IOException {
        ring = RingFile.create(file, network.options().access(), network.options().ringBytes(),
                network.firstPosition());
        if (!CurrentUser.owns(listener)) {
            throw new ShmUnavailableException(this + ": the listener's process is another user's");
        }
        hello = new RingHello(RingLayout.VERSION, secret, key, network.options().ringBytes(),
                file.getFileName().toString()).encode();
    }

    /** Says what the socket takes; true once all is said. */
    private boolean sayHello() throws IOException {
        try {
            socket.write(hello);
        } catch (IOException e) {
            if (hello.position() > 0) {
                throw e;
            }
            // A listener whose queue is full neither connects nor refuses: the socket looks connected until it is used.
            // A new one tries again.
            ShmConnection.closeQuietly(socket);
            socket = null;
            hello = null;
            releaseRing();
        }
        return hello != null && !hello.hasRemaining();
    }

    private FrameSender answered(ShmHandshakeReply answer) {
        if (answer == ShmHandshakeReply.NO_RING) {
            throw new ShmUnavailableException(this + " was refused: " + answer.text());
        }
        if (answer != ShmHandshakeReply.ACCEPTED) {
            throw new ConnectionException(
                    this + " was refused: " + (answer == null ? "for a reason of a later version" : answer.text()));
        }
        done = true;
        // The listener has deleted it; where it could not, this side can.
        RingFile.delete(file);
        ShmConnection link =
                new ShmConnection(network, "shared-memory connection " + key + " to " + peer, socket, peer, ring);
        ShmSender sender = new ShmSender(network, link, new RingProducer(ring, network.options().ringBytes(), link));
        network.forget(this);
        network.opened(link, sender::close);
        return sender;
    }

    private ConnectionException fail(ConnectionException e) {
        failure = e;
        release();
        return e;
    }

    private void release() {
        if (socket != null) {
            ShmConnection.closeQuietly(socket);
        }
        releaseRing();
        network.forget(this);
    }

    private void releaseRing() {
        if (ring != null) {
            ring.close();
            ring = null;
            RingFile.delete(file);
        }
    }

    @Override
    public synchronized void close() {
        if (!done && failure == null) {
            done = true;
            release();
        }
    }

    @Override
    public String toString() {
        return "shared-memory connection " + key + " to " + peer;
    }
}
