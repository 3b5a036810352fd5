package org.millrace.net.auto;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.net.Network;
import org.millrace.net.connection.TlsIdentity;
import org.millrace.net.plugin.PluginNetwork;
import org.millrace.net.plugin.PluginOptions;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.shm.SingleCopy;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;
import org.millrace.net.ucx.UcxNetwork;

/**
 * The choice of the network that carries the data, and its options.
 *
 * @param name       a {@link NetworkChoice}, or {@code plugin:} with the path of a network plugin for NCCL
 * @param socket     options for TCP; other networks also use TCP, to find their peers
 * @param ucxLibrary path of libucp; empty to search for the library
 */
public record NetworkOptions(String name, SocketOptions socket, ShmOptions shm, Optional<Path> ucxLibrary,
        PluginOptions plugin) {

    public static NetworkOptions of(Configuration configuration) {
        ShmOptions shm =
                ShmOptions.defaults().withSingleCopy(SingleCopy.of(configuration.get(Settings.SHM_SINGLE_COPY)));
        PluginOptions plugin = PluginOptions.defaults()
                .withDevices(configuration.get(Settings.NET_DEVICES), configuration.get(Settings.NET_MAX_RECVS));
        return new NetworkOptions(configuration.get(Settings.NETWORK), socket(configuration), shm,
                configuration.get(Settings.UCX_LIBRARY), plugin);
    }

    public static SocketOptions socket(Configuration configuration) {
        SocketOptions options = addresses(configuration);
        return options
                .withStreams(configuration.get(Settings.SOCKET_STREAMS).orElse(options.streams()),
                        options.stripeThreshold())
                .withDeadlines(configuration.get(Settings.CONNECT_DEADLINE), options.handshakeDeadline())
                .withReconnectDeadline(configuration.get(Settings.RECONNECT_DEADLINE))
                .withTls(TlsIdentity.of(configuration));
    }

    /** Returns the default options for TCP, but with the addresses from the settings. */
    public static SocketOptions addresses(Configuration configuration) {
        return SocketOptions.defaults()
                .withAddresses(configuration.get(Settings.SOCKET_INTERFACES).orElse(""),
                        configuration.get(Settings.SOCKET_FAMILY).orElse(null), null)
                .withRails(configuration.get(Settings.SOCKET_ADDRESSES).orElse(List.of()));
    }

    public NetworkOptions withSocket(SocketOptions options) {
        return new NetworkOptions(name, options, shm, ucxLibrary, plugin);
    }

    /** Returns the path of the network plugin; empty if the choice is another network. */
    public Optional<Path> pluginLibrary() {
        return name.startsWith(Settings.PLUGIN_PREFIX)
                ? Optional.of(Path.of(name.substring(Settings.PLUGIN_PREFIX.length())))
                : Optional.empty();
    }

    /**
     * @throws IllegalArgumentException             if no network has the name
     * @throws org.millrace.net.ConnectionException if the plugin cannot be used
     */
    public Network open() {
        Optional<Path> library = pluginLibrary();
        if (library.isEmpty()) {
            return NetworkChoice.parse(name).open(socket, shm, ucxLibrary);
        }
        if (socket.tls() != null) {
            throw inClear(name);
        }
        return PluginNetwork.open(library.get(), socket, plugin);
    }

    static ConfigurationException inClear(String network) {
        return new ConfigurationException(Settings.TLS.name() + "=1 is not possible with " + Settings.NETWORK.name()
                + "=" + network + ": its data would not be encrypted; auto and socket encrypt it");
    }

    /**
     * Choice of a network. All processes of a job must make the same choice, because a network cannot decode the
     * addresses of another network.
     */
    public enum NetworkChoice {

        /**
         * Shared memory for pairs of processes that can share memory. Other pairs use UCX if both processes have a card
         * with RDMA, and otherwise TCP.
         */
        AUTO,
        /** Shared memory only; a peer that cannot share memory with this process causes an error. */
        SHM,
        /** TCP, also between processes of one host. */
        SOCKET,
        /** UCX with all transports that UCX finds, also between processes of one host. */
        UCX;

        /**
         * Returns the choice that a setting names. The names are {@code auto}, {@code shm}, {@code socket} and
         * {@code ucx}, in upper or lower case.
         *
         * @throws IllegalArgumentException if no choice has the name; the message contains the allowed names
         */
        public static NetworkChoice parse(String name) {
            for (NetworkChoice choice : values()) {
                if (choice.setting().equals(name.toLowerCase(Locale.ROOT))) {
                    return choice;
                }
            }
            throw new IllegalArgumentException("there is no network '" + name + "'; there are "
                    + Arrays.stream(values()).map(NetworkChoice::setting).collect(Collectors.joining(", ")));
        }

        private String setting() {
            return name().toLowerCase(Locale.ROOT);
        }

        /** Opens the network of this choice. Searches for libucp if the network needs it. */
        public Network open(SocketOptions socket, ShmOptions shm) {
            return open(socket, shm, Optional.empty());
        }

        /**
         * Opens the network of this choice.
         *
         * @param ucx path of libucp; empty to search for the library
         */
        public Network open(SocketOptions socket, ShmOptions shm, Optional<Path> ucx) {
            return switch (this) {
                case AUTO -> {
                    SocketNetwork tcp = new SocketNetwork(socket);
                    yield new AutoNetwork(new ShmNetwork(shm), tcp,
                            socket.tls() == null ? UcxNetwork.withCard(ucx, tcp) : Optional.empty());
                }
                case SHM -> new ShmNetwork(shm);
                case SOCKET -> new SocketNetwork(socket);
                case UCX -> {
                    if (socket.tls() != null) {
                        throw NetworkOptions.inClear(setting());
                    }
                    yield new UcxNetwork(ucx, new SocketNetwork(socket));
                }
            };
        }
    }
}
