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
 * Which network carries the data, and how it is used.
 *
 * @param name       a {@link NetworkChoice}, or {@code plugin:} with the path of a network plugin for NCCL
 * @param socket     how TCP is used, also to find the peers of another network
 * @param ucxLibrary libucp; empty to have it looked for
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

    /** How TCP is used. */
    public static SocketOptions socket(Configuration configuration) {
        SocketOptions options = addresses(configuration);
        return options
                .withStreams(configuration.get(Settings.SOCKET_STREAMS).orElse(options.streams()),
                        options.stripeThreshold())
                .withDeadlines(configuration.get(Settings.CONNECT_DEADLINE), options.handshakeDeadline())
                .withReconnectDeadline(configuration.get(Settings.RECONNECT_DEADLINE))
                .withTls(TlsIdentity.of(configuration));
    }

    /** The defaults for TCP, with what the settings say of addresses. */
    public static SocketOptions addresses(Configuration configuration) {
        return SocketOptions.defaults()
                .withAddresses(configuration.get(Settings.SOCKET_INTERFACES).orElse(""),
                        configuration.get(Settings.SOCKET_FAMILY).orElse(null), null)
                .withRails(configuration.get(Settings.SOCKET_ADDRESSES).orElse(List.of()));
    }

    public NetworkOptions withSocket(SocketOptions options) {
        return new NetworkOptions(name, options, shm, ucxLibrary, plugin);
    }

    /** The network plugin that is named; empty if none is. */
    public Optional<Path> pluginLibrary() {
        return name.startsWith(Settings.PLUGIN_PREFIX)
                ? Optional.of(Path.of(name.substring(Settings.PLUGIN_PREFIX.length())))
                : Optional.empty();
    }

    /**
     * Opens the network.
     *
     * @throws IllegalArgumentException             if there is none of that name
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
                + "=" + network + ": its data would travel in clear; auto and socket encrypt it");
    }

    /**
     * Which network to use. All processes of a job must choose the same, as the addresses of one are not those of
     * another.
     */
    public enum NetworkChoice {

        /**
         * Shared memory for pairs of processes that have it; for the others UCX where both have a card with RDMA, or
         * TCP.
         */
        AUTO,
        /** Shared memory or nothing: a peer that shares none is an error. */
        SHM,
        /** TCP, on one host too. */
        SOCKET,
        /** Whatever transports UCX finds, on one host too. */
        UCX;

        /**
         * The choice with a name, for a setting: {@code auto}, {@code shm}, {@code socket} or {@code ucx}, in any case.
         *
         * @throws IllegalArgumentException if there is none of that name; it lists those that there are
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

        /** Opens the network of this choice, with UCX as it is found. */
        public Network open(SocketOptions socket, ShmOptions shm) {
            return open(socket, shm, Optional.empty());
        }

        /** Opens the network of this choice; libucp is looked for unless it is given. */
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
