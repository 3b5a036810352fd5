package org.millrace.transport.shared;

import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;
import org.millrace.transport.shared.SharedMemoryEnd.CommonMemory;

/**
 * P2P: between ranks of one process, whose devices reach each other's memory. The sending device writes into the
 * receiver's slots and moves the receiver's {@code tail}; with {@code NCCL_P2P_USE_CUDA_MEMCPY} it writes into its own,
 * and its proxy copies.
 */
public final class P2pTransport implements Transport {

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

    public P2pTransport(Configuration configuration) {
        this.configuration = configuration;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public Availability offer() {
        if (configuration.get(Settings.P2P_DISABLE)) {
            return Availability.no("NCCL_P2P_DISABLE=1");
        }
        return SharedMemoryEnd.refusal(configuration).orElse(Availability.yes(ProcessMemory.PROCESS));
    }

    @Override
    public Availability canConnect(PeerInfo here, PeerInfo there) {
        if (here.offer(NAME).equals(there.offer(NAME))) {
            return Availability.yes("one process");
        }
        return Availability.no(here.host().equals(there.host()) ? "other process " + there.pid() : "other host");
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return new SharedMemoryEnd(request, MEMORY, false, configuration.get(Settings.P2P_MEMCPY));
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return new SharedMemoryEnd(request, MEMORY, true, false);
    }
}
