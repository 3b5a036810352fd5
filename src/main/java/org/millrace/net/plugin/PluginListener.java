package org.millrace.net.plugin;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.ExpectedConnection;
import org.millrace.net.connection.HandshakeReply.Refusal;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.HelloFormat;
import org.millrace.net.connection.IncomingHello;
import org.millrace.net.connection.KeyedListener;
import org.millrace.net.socket.AddressFormat;
import org.millrace.net.socket.SocketOptions;
import org.millrace.net.socket.StreamSet;

/**
 * Accepts clients over TCP, and sends two handles to each client. The plugin listens at these handles for this client
 * only.
 */
final class PluginListener extends KeyedListener<PluginListener.Client> {

    static final AddressFormat ADDRESSES = new AddressFormat("plugin", MessageFormat.VERSION);

    private final DeviceSet devices;
    private final SocketOptions options;
    private final byte[] address;

    private PluginListener(DeviceSet devices, SocketOptions options, ServerSocketChannel server,
            InetSocketAddress bound, byte[] secret) {
        super(devices.open(),
                "listener for the network plugin " + devices.session().plugin() + " on "
                        + bound.getAddress().getHostAddress() + " port " + bound.getPort(),
                secret, options.handshakeDeadline(), List.of(server));
        this.devices = devices;
        this.options = options;
        address = ADDRESSES.encode(bound, secret, 1);
    }

    /** Listens on an address of this machine. */
    public static PluginListener open(DeviceSet devices, SocketOptions options, InetAddress host) {
        ServerSocketChannel server = bind(new InetSocketAddress(host, 0), 0, "plugin", OTHER_ADDRESS);
        return new PluginListener(devices, options, server, boundTo(server), HelloFormat.newSecret());
    }

    @Override
    public byte[] address() {
        return address.clone();
    }

    @Override
    protected ExpectedConnection<Client> newExpected(ConnectionKey key) {
        return new PluginAccept(this, devices, key);
    }

    @Override
    protected Client newClient(SocketChannel channel, long deadline) throws IOException {
        StreamSet.configure(channel, options);
        return new Client(channel, deadline);
    }

    /** A process that has requested a connection. This object is in use until the connection is established. */
    final class Client extends IncomingHello {

        private @Nullable PluginHello hello;

        Client(SocketChannel channel, long deadline) throws IOException {
            super(channel, PluginHello.FORMAT, deadline);
        }

        @Override
        protected void decode(ByteBuffer bytes) throws Refusal {
            PluginHello said = PluginHello.decode(bytes);
            String ours = devices.session().plugin();
            if (!new String(PluginHello.name(ours), java.nio.charset.StandardCharsets.UTF_8).equals(said.plugin())) {
                throw new Refusal(HandshakeReply.OTHER_PLUGIN, "it has loaded the network plugin '" + said.plugin()
                        + "', and this process '" + ours + "': MILLRACE_NET must be the same in all processes");
            }
            if (!said.sizes().isPlausible(PluginDevice.MAX_RECVS)) {
                throw new Refusal(HandshakeReply.MALFORMED, "it announces sizes that are not valid: " + said.sizes());
            }
            hello = said;
        }

        /** Returns the client's hello, which must have arrived. */
        PluginHello hello() {
            return Objects.requireNonNull(hello);
        }

        /** Describes the client's process. */
        String process() throws IOException {
            return process(hello().pid());
        }

        /**
         * Accepts the client, and sends the answer. The answer fits into the socket's send buffer, which is still
         * empty.
         */
        void tell(PluginHello.Answer answer) throws IOException {
            reply(HandshakeReply.ACCEPTED);
            channel().write(answer.encode());
        }
    }
}
