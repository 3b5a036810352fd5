package org.millrace.engine;

import org.millrace.config.Configuration;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.JoinOptions;

/** Puts communicators together. */
final class Engine {

    private Engine() {}

    static EngineCommunicator join(String rendezvous, int rank, int size, Configuration configuration) {
        return assemble(ControlPlane.join(rendezvous, rank, size, JoinOptions.of(configuration)), configuration, null);
    }

    /**
     * Collective: every rank of the group does it.
     *
     * @param shared the threads of the communicator that was split, or null
     */
    static EngineCommunicator assemble(ControlPlane control, Configuration configuration, EngineThreads shared) {
        Members members = new Members(control, configuration, shared);
        try {
            EngineCommunicator communicator = new EngineCommunicator(members);
            members.connectors().await();
            control.barrier(); // no rank may begin, and perhaps end, before its neighbours' connections are made
            return communicator;
        } catch (RuntimeException | Error thrown) {
            members.failure().fail(thrown);
            members.tearDown();
            throw thrown;
        }
    }
}
