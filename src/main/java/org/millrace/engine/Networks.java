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

/** Opens the network that the configuration names. */
final class Networks {

    private Networks() {}

    static Network open(Configuration configuration, Agreement agreement) {
        List<Fault> faults = Fault.of(configuration);
        NetworkOptions options = NetworkOptions.of(configuration);
        // Ranks of one host use the loopback interface, because no other host needs to reach them. If the user has
        // selected an interface, a family or an address, the ranks use the network of this selection.
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
