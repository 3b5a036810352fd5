package org.millrace.engine;

import java.net.InetAddress;
import java.util.List;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.link.Fault;
import org.millrace.net.link.LinkNetwork;
import org.millrace.net.socket.SocketOptions;

/** Opens the network that the configuration selects. */
final class Networks {

    private Networks() {}

    static Network open(Configuration configuration, Agreement agreement) {
        List<Fault> faults = Fault.of(configuration);
        NetworkOptions options = NetworkOptions.of(configuration);
        // If all ranks are on one host, they use the loopback interface, because no other host needs to reach them.
        // An interface, an address family or an address that the user has selected has priority.
        boolean chosen = configuration.get(Settings.SOCKET_INTERFACES).isPresent()
                || configuration.get(Settings.SOCKET_FAMILY).isPresent()
                || configuration.get(Settings.SOCKET_ADDRESSES).isPresent();
        SocketOptions socket = options.socket();
        Network network = options.withSocket(
                agreement.onOneHost() && !chosen ? socket.withRails(List.of(InetAddress.getLoopbackAddress())) : socket)
                .open();
        Fault.PlantedFaults.watch(faults);
        return LinkNetwork.of(configuration, network, faults);
    }
}
