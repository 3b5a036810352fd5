package org.millrace.engine;

import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;
import org.millrace.Communicator;
import org.millrace.CommunicatorListener;
import org.millrace.CommunicatorProvider;
import org.millrace.abi.ConnectionLayout;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.JoinOptions;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.library.BundledLibrary;
import org.millrace.net.link.Fault;
import org.millrace.net.link.LinkNetwork;
import org.millrace.proxy.SliceLists.PieceCheck;
import org.millrace.trace.JoinTrace;

/** Provider of communicators on the emulated device. */
public final class EngineProvider implements CommunicatorProvider {

    /** Creates the provider, for {@link java.util.ServiceLoader}. */
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
        EngineTrace.open(configuration, rank, size);
        return make(ControlPlane.join(rendezvous, rank, size, JoinOptions.of(configuration, listener)), configuration,
                null);
    }

    /**
     * Creates a communicator like {@link #assemble(ControlPlane, Configuration, EngineThreads, Executor)}. If this
     * method fails, the control plane is closed on return.
     */
    static EngineCommunicator make(ControlPlane control, Configuration configuration, @Nullable EngineThreads shared) {
        try {
            return assemble(control, configuration, shared, Runnable::run);
        } catch (RuntimeException | Error thrown) {
            control.close();
            throw thrown;
        }
    }

    /**
     * Creates a communicator. Collective: each rank of the group must call this method. If this method fails, the
     * control plane begins to close.
     *
     * @param shared  threads of the communicator whose split creates the new communicator; null if no split creates the
     *                new communicator
     * @param release executor that releases the resources of a failed communicator; a release may take 20 s
     */
    static EngineCommunicator assemble(ControlPlane control, Configuration configuration,
            @Nullable EngineThreads shared, Executor release) {
        try (JoinTrace _ = control.traceSetUp()) {
            CommunicatorParts parts = new CommunicatorParts(control, configuration, shared, release);
            try {
                EngineCommunicator communicator = new EngineCommunicator(parts);
                parts.connectors.await();
                control.complete(); // no rank may use or close the communicator before all ranks are connected
                parts.begin();
                return communicator;
            } catch (RuntimeException | Error thrown) {
                parts.failure.fail(thrown);
                parts.recovery.close();
                release.execute(parts::tearDown);
                throw thrown;
            }
        }
    }

    /**
     * Checks the settings that each rank checks again when it joins. A launcher calls this method before it starts any
     * rank, and therefore reports a wrong setting once.
     *
     * @throws ConfigurationException if a setting is not usable; the message states the allowed values
     */
    public static void requireUsable(Configuration configuration) {
        AlgorithmChoice.of(configuration);
        ProtocolChoice.of(configuration);
        refuseUnpack(configuration);
        Fault.of(configuration);
        LinkNetwork.require(configuration, List.of());
    }

    /**
     * Refuses unpacking together with large buffers. Each slice of two slots has a list, which tells a kernel the
     * locations of received data. A list can describe at most 4 MiB.
     */
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
