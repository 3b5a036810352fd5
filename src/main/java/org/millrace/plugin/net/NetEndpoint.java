package org.millrace.plugin.net;

import java.net.InetAddress;
import java.net.ProtocolFamily;
import java.net.StandardProtocolFamily;
import java.util.Locale;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.millrace.config.EnvironmentSettings;
import org.millrace.config.Settings;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkChoice;
import org.millrace.net.shm.peer.SingleCopy;
import org.millrace.net.shm.ring.ShmOptions;
import org.millrace.net.socket.handshake.Interfaces;
import org.millrace.net.socket.stream.SocketOptions;

/**
 * Where this process is in the network: one listener serves all communicators.
 *
 * @param listener where peers connect to
 */
public record NetEndpoint(Network network, Listener listener, NetDevice device) implements AutoCloseable {

    /** Streams of one connection at most, as NCCL's own socket network has it. */
    private static final long MAX_STREAMS = 16;

    /**
     * Opens what NCCL's variables ask for: NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY, and the product of
     * NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD as the number of streams of a connection.
     */
    public static NetEndpoint open(UnaryOperator<@Nullable String> environment) {
        EnvironmentSettings settings = new EnvironmentSettings(environment);
        String names = settings.get(Settings.SOCKET_INTERFACES).orElse("");
        ProtocolFamily family = family(settings.text("NCCL_SOCKET_FAMILY"));
        InetAddress address = Interfaces.choose(names, family);
        SocketOptions options = SocketOptions.defaults();
        long streams = settings.ncclNumber("NCCL_SOCKET_NTHREADS", 1) * settings.ncclNumber("NCCL_NSOCKS_PERTHREAD", 1);
        Network network = NetworkChoice.parse(settings.get(Settings.NETWORK))
                .open(options.withStreams((int) Math.clamp(streams, 1, MAX_STREAMS), options.stripeThreshold())
                        .withAddresses(names, family, address),
                        ShmOptions.defaults().withSingleCopy(SingleCopy.of(settings.get(Settings.SHM_SINGLE_COPY))));
        return new NetEndpoint(network, network.listen(), NetDevice.of(address));
    }

    private static @Nullable ProtocolFamily family(String name) {
        return switch (name.toUpperCase(Locale.ROOT)) {
            case "AF_INET" -> StandardProtocolFamily.INET;
            case "AF_INET6" -> StandardProtocolFamily.INET6;
            default -> null;
        };
    }

    @Override
    public void close() {
        listener.close();
        network.close();
    }

    @Override
    public String toString() {
        return network.name() + " over " + device + ", " + listener;
    }
}
