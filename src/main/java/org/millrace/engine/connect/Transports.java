package org.millrace.engine.connect;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.config.Configuration;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.transport.Transport;
import org.millrace.transport.net.NetTransport;
import org.millrace.transport.shared.P2pTransport;
import org.millrace.transport.shared.ShmTransport;

/**
 * The transports there are, in the order in which they are asked: those of other jars, and then NCCL's order, P2P, SHM,
 * NET.
 */
public final class Transports {

    private static final Logger LOG = LogManager.getLogger(Transports.class);

    private Transports() {}

    /**
     * All transports of a rank.
     *
     * @param here where the others reach this rank over the network
     */
    public static List<Transport> of(Configuration configuration, Path sharedDirectory, Network network,
            Listener here) {
        List<Transport> all = new ArrayList<>(found());
        all.add(new P2pTransport(configuration));
        all.add(new ShmTransport(configuration, sharedDirectory));
        all.add(new NetTransport(network, here));
        return all;
    }

    /** One that cannot be loaded is left out: this rank then says to the others that it does not have it. */
    private static List<Transport> found() {
        List<Transport> found = new ArrayList<>();
        for (ServiceLoader.Provider<Transport> provider : ServiceLoader.load(Transport.class).stream().toList()) {
            try {
                found.add(provider.get());
            } catch (ServiceConfigurationError e) {
                LOG.warn("a transport is left out: {}", e.getMessage());
            }
        }
        return found;
    }
}
