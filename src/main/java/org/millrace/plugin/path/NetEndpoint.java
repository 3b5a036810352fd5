package org.millrace.plugin.path;

import java.util.List;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.link.Fault;
import org.millrace.net.link.LinkNetwork;
import org.millrace.net.plugin.PluginNetwork;
import org.millrace.net.socket.Interfaces;
import org.millrace.net.socket.SocketOptions;
import org.millrace.plugin.host.NcclLog;

/**
 * This process's endpoint in the network. One listener serves all communicators.
 *
 * @param listener listener that peers connect to
 * @param faults   faults that a test planted in connections of this process
 */
public record NetEndpoint(Network network, Listener listener, NetDevice device,
        List<Fault> faults) implements AutoCloseable {

    /**
     * Opens the network that the settings select. MILLRACE_SOCKET_ADDRESSES, or NCCL_SOCKET_IFNAME and
     * NCCL_SOCKET_FAMILY, select the rails. MILLRACE_SOCKET_STREAMS sets the number of streams on each rail. The
     * default is the product of NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD.
     */
    public static NetEndpoint open(Configuration settings) {
        List<Fault> faults = Fault.of(settings);
        NetworkOptions options = NetworkOptions.of(settings).withSocket(sockets(settings));
        refuseItself(options);
        Network network = options.open();
        try {
            NetDevice device = network instanceof PluginNetwork plugin ? NetDevice.ofPlugin(plugin.devices())
                    : NetDevice.of(Interfaces.choose(options.socket()).addresses());
            Network linked = LinkNetwork.of(settings, network, faults);
            Listener listener = linked.listen();
            // libnccl accepts connections seldom and one by one. This thread refuses clients that are not peers, so
            // that they do not accumulate. The thread ends when the listener is closed.
            Thread.ofPlatform().daemon().name("millrace-accept").start(listener::attend);
            return new NetEndpoint(linked, listener, device, faults);
        } catch (RuntimeException e) {
            network.close();
            throw e;
        }
    }

    private static SocketOptions sockets(Configuration settings) {
        SocketOptions named = NetworkOptions.socket(settings);
        SocketOptions socket = named.withStreams(settings.streamsUnderNccl(), named.stripeThreshold());
        requireTls(settings, socket);
        return socket;
    }

    /**
     * Throws an exception if the settings require a secret and TLS is off. A listener's key is no secret, because NCCL
     * passes the listener's address and key to any process that has joined NCCL's own bootstrap.
     */
    private static void requireTls(Configuration settings, SocketOptions socket) {
        if (settings.get(Settings.REQUIRE_SECRET) && socket.tls() == null) {
            throw new ConfigurationException(Settings.REQUIRE_SECRET.name() + "=1: under libnccl only "
                    + Settings.TLS.name() + "=1 with " + Settings.SECRET.name()
                    + " keeps unauthenticated clients out, because NCCL's own bootstrap admits any process");
        }
    }

    /** Throws an exception if the settings name this plugin as the network that the plugin itself uses. */
    private static void refuseItself(NetworkOptions options) {
        if (options.pluginLibrary().filter(PluginNetwork::isMillrace).isPresent()) {
            throw new ConfigurationException(Settings.NETWORK.name() + "=" + options.name()
                    + " names Millrace's own plugin, as the network beneath itself; name another plugin, or auto");
        }
    }

    /** Returns the device that {@link #open} would create. */
    public static NetDevice device(Configuration settings) {
        return NetDevice.of(Interfaces.choose(NetworkOptions.addresses(settings)).addresses());
    }

    /** Waits until peers have read the data that closed connections had sent, see {@link Network#awaitPeers}. */
    public void awaitPeers() {
        network.awaitPeers();
    }

    @Override
    public void close() {
        listener.close();
        network.close();
        faults.stream()
                .filter(fault -> !Fault.PlantedFaults.counts().containsKey(fault))
                .forEach(fault -> NcclLog.warn(Fault.PlantedFaults.missed(fault)));
    }

    @Override
    public String toString() {
        return network.name() + " over " + device + ", " + listener;
    }
}
