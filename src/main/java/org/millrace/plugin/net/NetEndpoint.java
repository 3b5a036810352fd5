package org.millrace.plugin.net;

import java.nio.file.Path;
import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.millrace.config.ConfigurationException;
import org.millrace.config.EnvironmentSettings;
import org.millrace.config.SecuritySettings;
import org.millrace.config.Settings;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkChoice;
import org.millrace.net.fault.Fault;
import org.millrace.net.fault.FaultyNetwork;
import org.millrace.net.fault.PlantedFaults;
import org.millrace.net.plugin.PluginNetwork;
import org.millrace.net.plugin.PluginOptions;
import org.millrace.net.shm.peer.SingleCopy;
import org.millrace.net.shm.ring.ShmOptions;
import org.millrace.net.socket.handshake.Interfaces;
import org.millrace.net.socket.stream.SocketOptions;
import org.millrace.plugin.log.NcclLog;

/**
 * Where this process is in the network: one listener serves all communicators.
 *
 * @param listener where peers connect to
 * @param faults   what was planted, on purpose, in connections that this process makes
 */
public record NetEndpoint(Network network, Listener listener, NetDevice device,
        List<Fault> faults) implements AutoCloseable {

    /**
     * Opens what the settings ask for: the rails of MILLRACE_SOCKET_ADDRESSES, or of NCCL_SOCKET_IFNAME and
     * NCCL_SOCKET_FAMILY; on each as many streams as MILLRACE_SOCKET_STREAMS says, or else the product of
     * NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD.
     */
    public static NetEndpoint open(UnaryOperator<@Nullable String> environment) {
        EnvironmentSettings settings = new EnvironmentSettings(environment);
        List<Fault> faults = faults(settings);
        SocketOptions socket = sockets(settings);
        ShmOptions shm = ShmOptions.defaults()
                .withSingleCopy(SingleCopy.of(settings.get(Settings.SHM_SINGLE_COPY)))
                .withAccess(ShmOptions.RingAccess.of(settings.get(Settings.SHM_ACCESS)));
        Network network = NetworkChoice.open(beneath(settings.get(Settings.NETWORK)), socket, shm,
                settings.get(Settings.UCX_LIBRARY),
                PluginOptions.defaults()
                        .withDevices(settings.get(Settings.NET_DEVICES))
                        .withMaxRecvs(settings.get(Settings.NET_MAX_RECVS)));
        NetDevice device = network instanceof PluginNetwork plugin ? NetDevice.ofPlugin(plugin.devices())
                : NetDevice.of(Interfaces.choose(socket).addresses());
        return new NetEndpoint(faults.isEmpty() ? network : new FaultyNetwork(network, faults), network.listen(),
                device, faults);
    }

    public static SocketOptions sockets(EnvironmentSettings settings) {
        SocketOptions named = SocketOptions.of(settings::get);
        SocketOptions socket = named.withStreams(streams(settings), named.stripeThreshold());
        requireTls(settings, socket);
        return socket;
    }

    /**
     * NCCL passes on where a process listens, and with what secret, to any process that has joined its own bootstrap.
     */
    private static void requireTls(EnvironmentSettings settings, SocketOptions socket) {
        if (settings.get(SecuritySettings.REQUIRE_SECRET) && socket.tls() == null) {
            throw new ConfigurationException(SecuritySettings.REQUIRE_SECRET.name() + "=1: under libnccl only "
                    + SecuritySettings.TLS.name() + "=1 with " + SecuritySettings.SECRET.name()
                    + " keeps unauthenticated clients out, because NCCL's own bootstrap lets anybody in");
        }
    }

    /** The network that a setting names, which cannot be this plugin itself. */
    private static String beneath(String setting) {
        if (setting.startsWith(Settings.PLUGIN_PREFIX)
                && PluginNetwork.isMillrace(Path.of(setting.substring(Settings.PLUGIN_PREFIX.length())))) {
            throw new ConfigurationException(Settings.NETWORK.name() + "=" + setting
                    + " names Millrace's own plugin, as the network beneath itself; name another plugin, or auto");
        }
        return setting;
    }

    /** The device that {@link #open} would have. */
    public static NetDevice device(UnaryOperator<@Nullable String> environment) {
        return NetDevice.of(
                Interfaces.choose(SocketOptions.addressesOf(new EnvironmentSettings(environment)::get)).addresses());
    }

    private static int streams(EnvironmentSettings settings) {
        return settings.get(Settings.SOCKET_STREAMS).orElseGet(() -> {
            long nccls =
                    settings.ncclNumber("NCCL_SOCKET_NTHREADS", 1) * settings.ncclNumber("NCCL_NSOCKS_PERTHREAD", 1);
            return Math.clamp(nccls, 1, SocketOptions.MAX_STREAMS);
        });
    }

    private static List<Fault> faults(EnvironmentSettings settings) {
        try {
            return settings.get(Settings.FAULT).map(Fault::parse).orElse(List.of());
        } catch (IllegalArgumentException refused) {
            throw new ConfigurationException(Settings.FAULT.name() + ": " + refused.getMessage());
        }
    }

    @Override
    public void close() {
        listener.close();
        network.close();
        faults.stream()
                .filter(fault -> !PlantedFaults.counts().containsKey(fault))
                .forEach(fault -> NcclLog.warn(PlantedFaults.missed(fault)));
    }

    @Override
    public String toString() {
        return network.name() + " over " + device + ", " + listener;
    }
}
