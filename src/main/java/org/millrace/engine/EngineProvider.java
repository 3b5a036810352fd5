package org.millrace.engine;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.Communicator;
import org.millrace.CommunicatorListener;
import org.millrace.CommunicatorProvider;
import org.millrace.abi.ConnectionLayout;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.JoinOptions;
import org.millrace.library.BundledLibrary;
import org.millrace.net.link.Fault;
import org.millrace.net.link.LinkNetwork;
import org.millrace.proxy.SliceLists.PieceCheck;

/** Makes communicators on the emulated device. */
public final class EngineProvider implements CommunicatorProvider {

    /** For {@link java.util.ServiceLoader}. */
    public EngineProvider() {}

    @Override
    public String device() {
        return "host";
    }

    @Override
    public Communicator join(String rendezvous, int rank, int size, Map<String, String> settings,
            CommunicatorListener listener) {
        Configuration configuration = Configuration.load(settings);
        refuseUnpack(configuration);
        BundledLibrary.keepDescriptors();
        return assemble(ControlPlane.join(rendezvous, rank, size, JoinOptions.of(configuration, listener)),
                configuration, null);
    }

    /**
     * Collective: every rank of the group does it.
     *
     * @param shared the threads of the communicator that was split; null for others
     */
    static EngineCommunicator assemble(ControlPlane control, Configuration configuration,
            @Nullable EngineThreads shared) {
        CommunicatorParts parts = new CommunicatorParts(control, configuration, shared);
        try {
            EngineCommunicator communicator = new EngineCommunicator(parts);
            parts.connectors.await();
            control.barrier(); // no rank may begin, and perhaps end, before its neighbours' connections are made
            parts.begin();
            return communicator;
        } catch (RuntimeException | Error thrown) {
            parts.failure.fail(thrown);
            parts.tearDown();
            throw thrown;
        }
    }

    /**
     * Refuses what every rank would refuse when it joins, so that it can be said once, and before there are ranks.
     *
     * @throws ConfigurationException if a setting is not usable; the message says what is allowed
     */
    public static void requireUsable(Configuration configuration) {
        AlgorithmChoice.of(configuration);
        ProtocolChoice.of(configuration);
        refuseUnpack(configuration);
        Fault.of(configuration);
        LinkNetwork.require(configuration, List.of());
    }

    /** A list of pieces is for a slice of 4 MiB at the most, which is two slots. */
    static void refuseUnpack(Configuration configuration) {
        long most = PieceCheck.MAX_SLICE_BYTES / 2 * ConnectionLayout.SLOTS;
        if (configuration.get(Settings.NET_DEVICE_UNPACK).orElse(false)
                && configuration.get(Settings.BUFFER_SIZE) > most) {
            throw new ConfigurationException(Settings.BUFFER_SIZE.name() + " of more than " + (most >> 20)
                    + " MiB has slices that kernels cannot gather (" + Settings.NET_DEVICE_UNPACK.name()
                    + "=1): set one of them to less");
        }
    }
}
