package org.millrace.engine;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;
import org.millrace.transport.Transport;

/**
 * Memory of the user, registered with one rank's transports. Each transport that registers memory has a separate region
 * for this memory.
 */
final class RegisteredMemory implements AutoCloseable {

    private final Map<Transport, MemoryRegion> regions = new HashMap<>();
    private final IntFunction<Transport> choices;

    /**
     * @param choices function that returns the transport that connects this rank with another rank
     * @param maker   function that returns the region of a transport; null if the transport registers no memory
     */
    RegisteredMemory(List<Transport> transports, IntFunction<Transport> choices,
            Function<Transport, @Nullable MemoryRegion> maker) {
        this.choices = choices;
        try {
            for (Transport transport : transports) {
                MemoryRegion region = maker.apply(transport);
                if (region != null) {
                    regions.put(transport, region);
                }
            }
        } catch (RuntimeException | Error failure) {
            close();
            throw failure;
        }
    }

    /** Returns the region for connections with a peer; null if their data always passes through slots. */
    public @Nullable MemoryRegion with(int peer) {
        return regions.get(choices.apply(peer));
    }

    /** Closes the regions. Operations must no longer use the memory. May be called twice. */
    @Override
    public void close() {
        regions.values().forEach(MemoryRegion::close);
        regions.clear();
    }
}
