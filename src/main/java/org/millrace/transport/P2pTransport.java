package org.millrace.transport;

import org.millrace.config.Configuration;
import org.millrace.config.Settings;

/**
 * P2P: between ranks of one process, whose devices reach each other's memory. The sending device writes into the
 * receiver's slots and moves the receiver's {@code tail}; with {@code NCCL_P2P_USE_CUDA_MEMCPY} it writes into its own,
 * and its proxy copies.
 */
final class P2pTransport implements Transport {

    static final String NAME = "P2P";

    private static final CommonMemory.Source MEMORY = new CommonMemory.Source() {
        @Override
        public CommonMemory create(long bytes) {
            return ProcessMemory.create(bytes);
        }

        @Override
        public CommonMemory open(byte[] handle, long bytes) {
            return ProcessMemory.open(handle, bytes);
        }
    };

    private final Configuration configuration;

    P2pTransport(Configuration configuration) {
        this.configuration = configuration;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public Verdict offer() {
        if (configuration.get(Settings.P2P_DISABLE)) {
            return Verdict.no("NCCL_P2P_DISABLE=1");
        }
        return Transports.frames(configuration).orElse(Verdict.yes(ProcessMemory.PROCESS));
    }

    @Override
    public Verdict canConnect(PeerInfo here, PeerInfo there) {
        if (here.offer(NAME).equals(there.offer(NAME))) {
            return Verdict.yes("one process");
        }
        return Verdict.no(here.host().equals(there.host()) ? "other process " + there.pid() : "other host");
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return new MemoryEnd(request, MEMORY, false, configuration.get(Settings.P2P_MEMCPY));
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return new MemoryEnd(request, MEMORY, true, false);
    }
}
