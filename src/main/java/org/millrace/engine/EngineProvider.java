package org.millrace.engine;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.Communicator;
import org.millrace.CommunicatorListener;
import org.millrace.CommunicatorProvider;
import org.millrace.config.Configuration;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.JoinOptions;
import org.millrace.library.BundledLibrary;

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
        EngineSettings.refuseUnpack(configuration);
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
}
