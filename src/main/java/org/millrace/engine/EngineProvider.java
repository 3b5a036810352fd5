package org.millrace.engine;

import java.util.Map;
import org.millrace.Communicator;
import org.millrace.CommunicatorProvider;
import org.millrace.config.Configuration;

/** Makes communicators on the emulated device. */
public final class EngineProvider implements CommunicatorProvider {

    /** For {@link java.util.ServiceLoader}. */
    public EngineProvider() {}

    @Override
    public String device() {
        return "host";
    }

    @Override
    public Communicator join(String rendezvous, int rank, int size, Map<String, String> settings) {
        return Engine.join(rendezvous, rank, size, Configuration.load(settings));
    }
}
