package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import org.millrace.abi.DirectMemory;
import org.millrace.engine.EngineOptions.SharedMemoryOptions;
import org.millrace.engine.SharedMemoryEnd.CommonMemory;
import org.millrace.net.shm.SharedMemory;
import org.millrace.net.shm.ShmUnavailableException;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.EndSettings;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

/**
 * SHM transport between processes of one host. The devices write and read memory that both processes map. With {@code
 * NCCL_SHM_USE_CUDA_MEMCPY}, proxies copy on the sides that {@code NCCL_SHM_MEMCPY_MODE} selects. {@code
 * NCCL_SHM_LOCALITY} selects the side that creates the memory, and therefore the memory's NUMA node.
 */
final class ShmTransport implements Transport {

    static final String NAME = "SHM";

    /**
     * Separator in the text of {@link #offer}, which the ranks exchange. The text after the separator identifies the
     * processes that can share sealed memory, which no process can truncate.
     */
    private static final String SEALED = "; sealed in ";

    private final SharedMemoryOptions options;
    private final Path directory;

    public ShmTransport(SharedMemoryOptions options, Path directory) {
        this.options = options;
        this.directory = directory;
    }

    @Override
    public String name() {
        return NAME;
    }

    /**
     * Returns this rank's offer. The offer states which side creates the memory, because two ranks can connect only if
     * both state the same side.
     */
    @Override
    public Availability offer() {
        if (options.shmDisabled()) {
            return Availability.no("NCCL_SHM_DISABLE=1");
        }
        return options.refusal().map(Availability::no).orElseGet(() -> {
            try {
                long domain = SharedMemory.sealedDomain();
                return Availability.yes(SharedMemory.place(directory) + ", locality " + (options.senderMakes() ? 1 : 2)
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

    /**
     * Returns the part of an offer's text that must be equal on two ranks that connect. The other part is about sealed
     * memory and only selects the kind of memory.
     */
    private static String place(String offer) {
        return offer.split(SEALED, 2)[0];
    }

    private static boolean isSealed(PeerInfo here, PeerInfo there) {
        String offer = here.offer(NAME).text();
        return offer.contains(SEALED) && offer.equals(there.offer(NAME).text());
    }

    /**
     * Returns the source of sealed memory, which no process can truncate, if both processes support it. Otherwise
     * returns the source of memory in files of the shared directory.
     */
    private CommonMemory.Source memory(EndRequest request) {
        return isSealed(request.here(), request.there()) ? MappedMemory.SEALED : MappedMemory.in(directory);
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return new SharedMemoryEnd(request, memory(request), options.senderMakes(), options.senderCopies());
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return new SharedMemoryEnd(request, memory(request), !options.senderMakes(), options.receiverCopies());
    }

    @Override
    public boolean isRead(MemorySegment memory, PeerInfo here, PeerInfo there, EndSettings settings) {
        return !options.senderCopies() && !options.receiverCopies() && settings.heap() != null && isSealed(here, there)
                && DirectMemory.contains(settings.heap().segment(), memory);
    }
}
