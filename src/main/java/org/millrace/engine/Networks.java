package org.millrace.engine;

import java.net.InetAddress;
import java.util.List;
import java.util.Optional;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.engine.options.Agreement;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkChoice;
import org.millrace.net.fault.Fault;
import org.millrace.net.fault.FaultyNetwork;
import org.millrace.net.fault.PlantedFaults;
import org.millrace.net.plugin.PluginOptions;
import org.millrace.net.shm.peer.SingleCopy;
import org.millrace.net.shm.ring.ShmOptions;
import org.millrace.net.socket.stream.SocketOptions;

/** Opens the network that the configuration names. */
final class Networks {

    private Networks() {}

    static Network open(Configuration configuration, Agreement agreement) {
        Optional<List<Fault>> faults = EngineSettings.faults(configuration);
        Network network =
                NetworkChoice.open(configuration.get(Settings.NETWORK), socketOptions(configuration, agreement),
                        ShmOptions.defaults()
                                .withSingleCopy(SingleCopy.of(configuration.get(Settings.SHM_SINGLE_COPY)))
                                .withAccess(ShmOptions.RingAccess.of(configuration.get(Settings.SHM_ACCESS))),
                        configuration.get(Settings.UCX_LIBRARY),
                        PluginOptions.defaults()
                                .withDevices(configuration.get(Settings.NET_DEVICES))
                                .withMaxRecvs(configuration.get(Settings.NET_MAX_RECVS)));
        faults.ifPresent(PlantedFaults::watch);
        return faults.<Network>map(planted -> new FaultyNetwork(network, planted)).orElse(network);
    }

    private static SocketOptions socketOptions(Configuration configuration, Agreement agreement) {
        SocketOptions options = SocketOptions.of(configuration::get);
        // ranks of one host need no interface that others could reach, unless the user wants one
        boolean chosen = configuration.get(Settings.SOCKET_INTERFACES).isPresent()
                || configuration.get(Settings.SOCKET_FAMILY).isPresent()
                || configuration.get(Settings.SOCKET_ADDRESSES).isPresent();
        return agreement.onOneHost() && !chosen ? options.withRails(List.of(InetAddress.getLoopbackAddress()))
                : options;
    }
}
