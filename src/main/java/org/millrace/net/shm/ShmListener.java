package org.millrace.net.shm;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.List;
import java.util.Objects;
import jdk.net.ExtendedSocketOptions;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.file.FileName;
import org.millrace.file.PrivateFile;
import org.millrace.file.SharedDirectory;
import org.millrace.file.StaleFiles;
import org.millrace.file.User;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.connection.ExpectedConnection;
import org.millrace.net.connection.HandshakeReply.Refusal;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.IncomingHello;
import org.millrace.net.connection.KeyedListener;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.shm.ShmNetwork.ShmAddress;

/** Accepts processes of this user as clients, on a Unix-domain socket. */
final class ShmListener extends KeyedListener<ShmListener.Client> {

    /** A client with its hello, which names the ring that the client created. */
    static final class Client extends IncomingHello {

        private @Nullable RingHello hello;

        Client(SocketChannel channel, long deadline) {
            super(channel, RingHello.FORMAT, "a process of this user", deadline);
        }

        @Override
        protected void decode(ByteBuffer bytes) {
            hello = RingHello.decode(bytes);
        }

        /** Returns the client's hello. The hello must have arrived completely. */
        RingHello hello() {
            return Objects.requireNonNull(hello);
        }
    }

    private final OpenResources network;
    private final ShmOptions options;
    private final ShmAddress address;
    private final Path path;

    private ShmListener(OpenResources network, ShmOptions options, ShmAddress address, Path path,
            ServerSocketChannel server) {
        super(network, "shared-memory listener " + path, address.secret(), options.handshakeDeadline(),
                List.of(server));
        this.network = network;
        this.options = options;
        this.address = address;
        this.path = path;
    }

    /** Listens in the shared directory, and then deletes the files that killed processes have left in the directory. */
    public static ShmListener open(OpenResources network, ShmOptions options, ShmAddress address) {
        Path path = options.directory().resolve(FileName.ours(address.id(), FileName.SOCKET).toString());
        try {
            ShmListener listener = new ShmListener(network, options, address, path, bind(path));
            StaleFiles.sweep(options.directory());
            return listener;
        } catch (IOException | UnsupportedOperationException e) {
            throw new ShmUnavailableException("cannot listen on the Unix-domain socket " + path + ": " + e
                    + "; have memory mounted at " + SharedDirectory.MEMORY + " that this user can write, or take TCP "
                    + "(MILLRACE_NET=socket)", e);
        }
    }

    private static ServerSocketChannel bind(Path path) throws IOException {
        StaleFiles.madeIn(path.getParent());
        ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            server.configureBlocking(false);
            server.bind(UnixDomainSocketAddress.of(path), BACKLOG);
            Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(PrivateFile.PERMISSIONS));
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
    protected ExpectedConnection<Client> newExpected(ConnectionKey key) {
        return new ShmAccept(this, network, options, key);
    }

    @Override
    protected Client newClient(SocketChannel channel, long deadline) throws IOException, Refusal {
        channel.configureBlocking(false);
        UserPrincipal user = User.principal(path);
        UserPrincipal other = channel.getOption(ExtendedSocketOptions.SO_PEERCRED).user();
        if (!other.equals(user)) {
            throw new Refusal(null, "it belongs to the user " + other + ", and this process to " + user);
        }
        return new Client(channel, deadline);
    }

    @Override
    protected void released() {
        PrivateFile.delete(path);
    }

    /**
     * A connection that a listener expects. Accepts the client that presents the connection's key, and maps its ring.
     */
    static final class ShmAccept extends ExpectedConnection<ShmListener.Client> {

        private static final Logger LOG = LogManager.getLogger(ShmAccept.class);

        private final OpenResources network;
        private final ShmOptions options;

        ShmAccept(ShmListener listener, OpenResources network, ShmOptions options, ConnectionKey key) {
            super(listener, key);
            this.network = network;
            this.options = options;
        }

        @Override
        protected @Nullable FrameReceiver accept() {
            ShmListener.Client came = came().removeFirst();
            try {
                return connect(came);
            } catch (IOException e) {
                came.refuse(new Refusal(HandshakeReply.NO_RING, e.toString()));
                throw new ConnectionException(this + ": the peer left while it was accepted: " + e.getMessage(), e);
            } catch (ShmUnavailableException e) {
                LOG.warn("{}: {}", this, e.getMessage());
                came.refuse(new Refusal(HandshakeReply.NO_RING, String.valueOf(e.getMessage())));
                throw e;
            } catch (SingleCopy.SingleCopyException e) {
                LOG.warn("{}: {}", this, e.getMessage());
                came.refuse(new Refusal(HandshakeReply.NO_SINGLE_COPY, String.valueOf(e.getMessage())));
                throw e;
            }
        }

        /**
         * Maps the client's ring and replies. Returns null if the client must connect again with a ring in the
         * directory.
         */
        private @Nullable FrameReceiver connect(ShmListener.Client came) throws IOException {
            RingHello hello = came.hello();
            FileName name = FileName.parse(hello.ring());
            if (name == null || !(name.isSealed() || name.kind().equals(FileName.RING))
                    || !ShmOptions.isRingLength(hello.capacity())) {
                throw new ShmUnavailableException("the peer named a ring '" + hello.ring() + "' of " + hello.capacity()
                        + " bytes, which cannot be a ring");
            }
            int capacity = (int) hello.capacity();
            RingMemory ring;
            try {
                ring = open(name, capacity);
            } catch (IOException e) {
                if (!name.isSealed()) {
                    throw new ShmUnavailableException("cannot open the peer's ring: " + e.getMessage()
                            + "; do both processes see the directory " + options.directory() + "?", e);
                }
                LOG.debug("{}: {}; a ring in {} serves instead", this, e.getMessage(), options.directory());
                came.refuse(new Refusal(HandshakeReply.NO_SEALED_RING, String.valueOf(e.getMessage())));
                return null;
            }
            PeerMemory memory;
            try {
                memory = SingleCopyHandshake.answer(ring, options, name.owner());
                // From now on the ring's memory exists only as long as the mappings of the two processes. The memory is
                // freed when both processes have ended, even if they are killed.
                SharedFile.withdraw(options.directory(), name);
                came.reply(HandshakeReply.ACCEPTED);
            } catch (IOException | ConnectionException e) {
                ring.close();
                throw e;
            }
            ShmConnection connection = new ShmConnection(network,
                    "shared-memory connection " + key() + " from " + name.owner(), came.channel(), name.owner(), ring);
            ShmReceiver receiver = new ShmReceiver(connection, capacity, options.pieceBytes(), memory);
            network.opened(connection, receiver::close);
            return receiver;
        }

        private RingMemory open(FileName name, int capacity) throws IOException {
            if (name.isSealed() && !options.sealed()) {
                throw new IOException("sealed rings are switched off");
            }
            return RingMemory.open(SharedFile.open(options.directory(), name), name, capacity);
        }
    }
}
