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
import org.jspecify.annotations.Nullable;
import org.millrace.file.FileName;
import org.millrace.file.PrivateFile;
import org.millrace.file.SharedDirectory;
import org.millrace.file.StaleFiles;
import org.millrace.file.User;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.ExpectedConnection;
import org.millrace.net.connection.HandshakeReply.Refusal;
import org.millrace.net.connection.IncomingHello;
import org.millrace.net.connection.KeyedListener;
import org.millrace.net.connection.OpenResources;

/** Accepts clients of this user on a Unix-domain socket. */
final class ShmListener extends KeyedListener<ShmListener.Client> {

    /** A client, and the ring that it made. */
    static final class Client extends IncomingHello {

        private @Nullable RingHello hello;

        Client(SocketChannel channel, long deadline) {
            super(channel, RingHello.FORMAT, "a process of this user", deadline);
        }

        @Override
        protected void decode(ByteBuffer bytes) {
            hello = RingHello.decode(bytes);
        }

        /** What it said; its hello must be here. */
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

    /** Listens in the shared directory, after what killed processes left there is deleted. */
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
}
