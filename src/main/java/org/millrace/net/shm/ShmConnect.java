package org.millrace.net.shm;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.file.FileName;
import org.millrace.file.PrivateFile;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.HandshakeReply.Refused;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.connection.OutgoingConnection;
import org.millrace.net.shm.ShmNetwork.ShmAddress;

/**
 * A pending connection to a listener. It connects to the listener's socket, creates the ring, sends the hello, and
 * waits for the reply.
 */
final class ShmConnect extends OutgoingConnection {

    private static final Logger LOG = LogManager.getLogger(ShmConnect.class);

    private final ShmOptions options;
    private final long firstPosition;
    private final ConnectionKey key;
    private final Path listener;
    private final ProcessIdentity peer;
    private final byte[] secret;
    private final ByteBuffer received = ByteBuffer.allocate(HandshakeReply.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private @Nullable SocketChannel socket;
    /** Whether the ring is a sealed file. Set to false when the listener replies that it cannot open a sealed file. */
    private boolean sealed;
    /** File of the ring; null before its creation, and after the listener has opened it. */
    private @Nullable SharedFile file;
    private @Nullable RingMemory ring;
    /** Buffer with the part of the hello that is not sent yet; null while the socket is not connected. */
    private @Nullable ByteBuffer hello;

    private ShmConnect(OpenResources network, ShmOptions options, long firstPosition, ConnectionKey key, byte[] secret,
            Path listener, ProcessIdentity peer) {
        super(network, "shared-memory connection " + key + " to " + peer, options.connectDeadline());
        this.options = options;
        this.firstPosition = firstPosition;
        this.key = key;
        this.secret = secret;
        this.listener = listener;
        this.peer = peer;
        sealed = options.sealed() && SharedFile.canBeSealedFor(peer);
    }

    /** Finds the listener's socket, and begins to connect to it. */
    public static ShmConnect begin(OpenResources network, ShmOptions options, long firstPosition, ShmAddress address,
            ConnectionKey key) {
        if (address.host() != SharedMemory.thisHost()) {
            throw new ShmUnavailableException("connection " + key + ": the listener " + address
                    + " is on another host, with which no memory is shared");
        }
        Path directory = options.directory();
        try (DirectoryStream<Path> sockets = Files.newDirectoryStream(directory, FileName.socketGlob(address.id()))) {
            for (Path socket : sockets) {
                FileName name = FileName.parse(socket.getFileName().toString());
                if (name != null && PrivateFile.isOurs(socket)) {
                    return new ShmConnect(network, options, firstPosition, key, address.secret(), socket, name.owner());
                }
            }
        } catch (IOException e) {
            throw new ShmUnavailableException("cannot look for the listener " + address + " in " + directory + ": " + e,
                    e);
        }
        throw new ShmUnavailableException("the listener " + address + " has no socket in " + directory + ": it was "
                + "closed, or its process sees another directory of that name, as one in another container does");
    }

    @Override
    protected @Nullable FrameSender advance() {
        try {
            SocketChannel connecting = socket == null ? connect() : socket;
            if (hello == null && (connecting.isConnected() || connecting.finishConnect())) {
                makeRing();
            }
            if (hello != null && writeHello(connecting, hello)) {
                boolean ended = connecting.read(received) < 0;
                if (HandshakeReply.accepts(this + ": the listener", RingHello.FORMAT, received, ended)) {
                    return connected(connecting);
                }
            }
            return null;
        } catch (Refused e) {
            if (e.reply() == HandshakeReply.NO_SEALED_RING && sealed) {
                sealed = false;
                release();
                return null;
            }
            throw e.reply() == HandshakeReply.NO_RING ? new ShmUnavailableException(String.valueOf(e.getMessage()), e)
                    : e;
        } catch (IOException e) {
            throw new ShmUnavailableException(this + ": " + e.getMessage() + "; has the listener's process ended?", e);
        }
    }

    private SocketChannel connect() throws IOException {
        SocketChannel opened = SocketChannel.open(StandardProtocolFamily.UNIX);
        socket = opened;
        opened.configureBlocking(false);
        opened.connect(UnixDomainSocketAddress.of(listener));
        return opened;
    }

    private void makeRing() throws IOException {
        SharedFile made = makeFile();
        file = made;
        ring = RingMemory.create(made, options.ringBytes(), firstPosition);
        SingleCopyHandshake.invite(ring, options);
        if (!PrivateFile.isOurs(listener)) {
            throw new ShmUnavailableException(this + ": the listener's process is another user's");
        }
        hello = new RingHello(options.ringBytes(), made.name().toString()).encode(secret, key);
    }

    private SharedFile makeFile() {
        long allocated = RingLayout.allocatedBytes(options.ringBytes());
        long length = RingLayout.fileBytes(options.ringBytes());
        if (sealed) {
            try {
                return SharedFile.createSealed(allocated, length);
            } catch (IOException e) {
                LOG.debug("{}: no sealed ring: {}", this, e.getMessage());
            }
        }
        try {
            return SharedFile.create(options.directory(), FileName.RING, allocated, length);
        } catch (IOException e) {
            throw ShmUnavailableException.noRoom("a ring", allocated, options.directory(),
                    "take TCP instead (MILLRACE_NET=socket)", e);
        }
    }

    /** Writes as much of the hello as the socket accepts. Returns true when the hello is complete. */
    private boolean writeHello(SocketChannel to, ByteBuffer left) throws IOException {
        if (!left.hasRemaining()) {
            return true;
        }
        try {
            to.write(left);
            return !left.hasRemaining();
        } catch (IOException e) {
            if (left.position() > 0) {
                throw e;
            }
            // If the listener's queue is full, the socket seems connected until its first use. The next attempt needs a
            // new socket.
            release();
            return false;
        }
    }

    private FrameSender connected(SocketChannel connected) {
        RingMemory mapped = ring;
        if (mapped == null) {
            throw new IllegalStateException(this + ": accepted without a ring");
        }
        // The file is not needed any longer, because the listener has opened it.
        withdrawFile();
        SingleCopyHandshake.check(mapped, options, toString());
        ShmConnection connection = new ShmConnection(network(), toString(), connected, peer, mapped);
        ShmSender sender = new ShmSender(connection, options);
        network().opened(connection, sender::close);
        return sender;
    }

    @Override
    protected String waitingFor() {
        return (hello == null ? "the socket to connect" : "an answer") + "; is the peer alive and accepting?";
    }

    @Override
    protected void release() {
        ConnectionState.closeQuietly(socket);
        socket = null;
        hello = null;
        received.clear();
        if (ring != null) {
            ring.close();
            ring = null;
        }
        withdrawFile();
    }

    private void withdrawFile() {
        if (file != null) {
            file.withdraw();
            file = null;
        }
    }
}
