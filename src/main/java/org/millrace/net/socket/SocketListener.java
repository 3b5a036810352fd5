package org.millrace.net.socket;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.ExpectedConnection;
import org.millrace.net.connection.HandshakeReply.Refusal;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.HelloFormat;
import org.millrace.net.connection.IncomingHello;
import org.millrace.net.connection.KeyedListener;
import org.millrace.net.connection.OpenResources;

/** Accepts streams on one address for each rail, and assigns them to the expected connections. */
final class SocketListener extends KeyedListener<SocketListener.Client> {

    private final OpenResources network;
    private final SocketOptions options;
    private final List<InetSocketAddress> addresses;
    private final byte[] address;
    private final @Nullable Reconnector reconnector;

    private SocketListener(OpenResources network, SocketOptions options, List<ServerSocketChannel> servers,
            List<InetSocketAddress> addresses, byte[] secret, @Nullable Reconnector reconnector) {
        super(network,
                "socket listener " + addresses.stream()
                        .map(bound -> bound.getAddress().getHostAddress() + " port " + bound.getPort())
                        .collect(Collectors.joining(", ")),
                secret, options.handshakeDeadline(), servers);
        this.network = network;
        this.options = options;
        this.addresses = addresses;
        this.reconnector = reconnector;
        address = AddressFormat.SOCKET.encode(addresses.getFirst(), secret, addresses.size());
    }

    /** Listens on addresses of this machine. */
    public static SocketListener open(OpenResources network, SocketOptions options, List<InetAddress> hosts,
            @Nullable Reconnector reconnector) {
        List<ServerSocketChannel> servers = new ArrayList<>();
        try {
            hosts.forEach(host -> servers.add(
                    bind(new InetSocketAddress(host, 0), options.receiveBufferBytes(), "connections", OTHER_ADDRESS)));
        } catch (ConnectionException e) {
            servers.forEach(ConnectionState::closeQuietly);
            throw e;
        }
        return new SocketListener(network, options, servers, servers.stream().map(KeyedListener::boundTo).toList(),
                HelloFormat.newSecret(), reconnector);
    }

    @Override
    public byte[] address() {
        return address.clone();
    }

    @Override
    protected ExpectedConnection<Client> newExpected(ConnectionKey key) {
        return new SocketAccept(this, network, key, reconnector);
    }

    @Override
    protected Client newClient(SocketChannel channel, long deadline) throws IOException {
        StreamSet.configure(channel, options);
        return new Client(
                options.tls() == null ? channel : options.tls().server(channel, AddressFormat.secret(address)),
                deadline);
    }

    @Override
    protected boolean isServed(Client stream) {
        if (!stream.hello().isQuery()) {
            return false;
        }
        try {
            stream.tell(addresses);
        } catch (IOException gone) {
            // The client closed the stream before it received the addresses.
        }
        stream.close();
        return true;
    }

    /** A TCP stream from a client to a listener, until the stream is part of a connection. */
    static final class Client extends IncomingHello {

        private @Nullable StreamHello hello;
        private @Nullable ByteBuffer resume;
        private long pid;

        Client(SocketChannel channel, long deadline) throws IOException {
            super(channel, StreamHello.FORMAT, deadline);
        }

        /** Returns the description of the client's process. The client's hello must be complete. */
        String process() throws IOException {
            return process(pid);
        }

        @Override
        protected void decode(ByteBuffer bytes) throws Refusal {
            StreamHello said = StreamHello.decode(bytes);
            if (!said.isPlausible()) {
                throw new Refusal(HandshakeReply.MALFORMED,
                        "it states that it is stream " + said.stream() + " of " + said.streams()
                                + " with a stripe threshold of " + said.threshold() + ", on rail " + said.rail()
                                + " of " + said.rails() + ", with a window of " + said.window() + " frames");
            }
            hello = said;
            pid = StreamHello.pidIn(bytes);
            resume = StreamHello.resumeIn(bytes);
        }

        /**
         * Returns whether the same process opened another stream, possibly in an earlier attempt to connect. The hellos
         * on both streams must be complete.
         */
        boolean isOfProcess(Client other) {
            return pid == other.pid && resume().equals(other.resume());
        }

        /** Returns the client's data about its reconnector. The client's hello must be complete. */
        ByteBuffer resume() {
            return Objects.requireNonNull(resume);
        }

        /**
         * Accepts this stream as part of a connection, and sends the reply and the data of this process's reconnector.
         * Both fit into the empty send buffer of the stream.
         */
        void accept(@Nullable Reconnector reconnector) throws IOException {
            reply(HandshakeReply.ACCEPTED);
            channel().write(StreamHello.encode(reconnector));
        }

        /**
         * Returns the address of the reconnector in the client's process. Requests to restore this stream are sent to
         * that address.
         */
        StreamRecovery.Peer peer(boolean bound) throws IOException {
            return StreamRecovery.Peer.of(channel(), bound, StreamHello.resumePort(resume()));
        }

        /** Returns the client's hello, which must be complete. */
        StreamHello hello() {
            return Objects.requireNonNull(hello);
        }

        /**
         * Sends the listener's addresses after the reply. The reply and the addresses fit into the stream's empty send
         * buffer.
         */
        void tell(List<InetSocketAddress> addresses) throws IOException {
            reply(HandshakeReply.ACCEPTED);
            channel().write(AddressFormat.encodeList(addresses));
        }

        /** Returns the rail that this stream belongs to. */
        Rail rail() throws IOException {
            InetSocketAddress local = (InetSocketAddress) channel().getLocalAddress();
            return new Rail(hello().rail(), this + " to " + local.getAddress().getHostAddress());
        }
    }
}
