package org.millrace.transport;

import java.nio.file.Path;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.net.shm.file.SharedMemory;
import org.millrace.net.shm.file.ShmUnavailableException;

/**
 * SHM: between processes of one host, through memory that both map. The devices write and read it themselves; with
 * {@code NCCL_SHM_USE_CUDA_MEMCPY} the proxies of the sides that {@code NCCL_SHM_MEMCPY_MODE} names copy.
 * {@code NCCL_SHM_LOCALITY} says which side makes the memory, and so on which memory node it lies.
 */
final class ShmTransport implements Transport {

    static final String NAME = "SHM";

    private static final int SENDER = 1;
    private static final int RECEIVER = 2;

    private final Configuration configuration;
    private final Path directory;
    private final CommonMemory.Source memory;

    ShmTransport(Configuration configuration, Path directory) {
        this.configuration = configuration;
        this.directory = directory;
        this.memory = FileMemory.in(directory);
    }

    @Override
    public String name() {
        return NAME;
    }

    /** The side that makes the memory is one of the things that both ranks must say alike. */
    @Override
    public Verdict offer() {
        if (configuration.get(Settings.SHM_DISABLE)) {
            return Verdict.no("NCCL_SHM_DISABLE=1");
        }
        return Transports.frames(configuration).orElseGet(() -> {
            try {
                return Verdict
                        .yes(SharedMemory.place(directory) + ", locality " + configuration.get(Settings.SHM_LOCALITY));
            } catch (ShmUnavailableException e) {
                return Verdict.no(e.getMessage());
            }
        });
    }

    @Override
    public Verdict canConnect(PeerInfo here, PeerInfo there) {
        String mine = here.offer(NAME).text();
        String theirs = there.offer(NAME).text();
        return mine.equals(theirs) ? Verdict.yes(mine)
                : Verdict.no("rank " + here.rank() + " has " + mine + ", rank " + there.rank() + " " + theirs);
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return new MemoryEnd(request, memory, configuration.get(Settings.SHM_LOCALITY) == SENDER, copies(SENDER));
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return new MemoryEnd(request, memory, configuration.get(Settings.SHM_LOCALITY) == RECEIVER, copies(RECEIVER));
    }

    private boolean copies(int side) {
        return configuration.get(Settings.SHM_MEMCPY) && (configuration.get(Settings.SHM_MEMCPY_MODE) & side) != 0;
    }
}
