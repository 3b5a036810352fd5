package org.millrace.transport.shared;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.net.shm.file.SharedMemory;
import org.millrace.net.shm.file.ShmUnavailableException;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;
import org.millrace.transport.shared.SharedMemoryEnd.CommonMemory;

/**
 * SHM: between processes of one host, through memory that both map. The devices write and read it themselves; with
 * {@code NCCL_SHM_USE_CUDA_MEMCPY} the proxies of the sides that {@code NCCL_SHM_MEMCPY_MODE} names copy.
 * {@code NCCL_SHM_LOCALITY} says which side makes the memory, and so on which memory node it lies.
 */
public final class ShmTransport implements Transport {

    static final String NAME = "SHM";

    private static final int SENDER = 1;
    private static final int RECEIVER = 2;

    /** Behind it an offer says whether its memory can be such as nobody can make shorter. */
    private static final String SEALED = "; sealed in ";

    private final Configuration configuration;
    private final Path directory;

    public ShmTransport(Configuration configuration, Path directory) {
        this.configuration = configuration;
        this.directory = directory;
    }

    @Override
    public String name() {
        return NAME;
    }

    /** The side that makes the memory is one of the things that both ranks must say alike. */
    @Override
    public Availability offer() {
        if (configuration.get(Settings.SHM_DISABLE)) {
            return Availability.no("NCCL_SHM_DISABLE=1");
        }
        return SharedMemoryEnd.refusal(configuration).orElseGet(() -> {
            try {
                long domain = SharedMemory.sealedDomain();
                return Availability
                        .yes(SharedMemory.place(directory) + ", locality " + configuration.get(Settings.SHM_LOCALITY)
                                + (domain == 0 ? "" : SEALED + Long.toHexString(domain)));
            } catch (ShmUnavailableException e) {
                return Availability.no(e.getMessage());
            }
        });
    }

    @Override
    public Availability canConnect(PeerInfo here, PeerInfo there) {
        String mine = here.offer(NAME).text();
        String theirs = there.offer(NAME).text();
        return place(mine).equals(place(theirs)) ? Availability.yes(mine)
                : Availability.no("rank " + here.rank() + " has " + mine + ", rank " + there.rank() + " " + theirs);
    }

    /** Without what only decides which kind of memory it is. */
    private static String place(String offer) {
        return offer.split(SEALED, 2)[0];
    }

    /** Nobody can make the memory shorter where both processes can reach such; in a file of the directory else. */
    private CommonMemory.Source memory(EndRequest request) {
        String offer = request.here().offer(NAME).text();
        boolean sealed = offer.contains(SEALED) && offer.equals(request.there().offer(NAME).text());
        return FileMemory.in(directory, sealed);
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return new SharedMemoryEnd(request, memory(request), configuration.get(Settings.SHM_LOCALITY) == SENDER,
                copies(SENDER));
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return new SharedMemoryEnd(request, memory(request), configuration.get(Settings.SHM_LOCALITY) == RECEIVER,
                copies(RECEIVER));
    }

    private boolean copies(int side) {
        return configuration.get(Settings.SHM_MEMCPY) && (configuration.get(Settings.SHM_MEMCPY_MODE) & side) != 0;
    }

    /** Memory that two processes of one host share. */
    private record FileMemory(SharedMemory memory) implements CommonMemory {

        /** Sealed memory, or memory in files of a directory. */
        static Source in(Path directory, boolean sealed) {
            return new Source() {
                @Override
                public CommonMemory create(long bytes) {
                    return new FileMemory(
                            sealed ? SharedMemory.createSealed(bytes) : SharedMemory.create(directory, bytes));
                }

                @Override
                public CommonMemory open(byte[] handle, long bytes) {
                    return new FileMemory(
                            SharedMemory.open(directory, new String(handle, StandardCharsets.UTF_8), bytes));
                }
            };
        }

        @Override
        public MemorySegment segment() {
            return memory.segment();
        }

        @Override
        public byte[] handle() {
            return memory.name().getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public void close() {
            memory.close();
        }
    }
}
