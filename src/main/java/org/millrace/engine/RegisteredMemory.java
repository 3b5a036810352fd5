package org.millrace.engine;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;
import org.millrace.transport.Transport;

/** Memory of the user's as the transports of one rank know it. */
final class RegisteredMemory implements AutoCloseable {

    private final Map<Transport, MemoryRegion> regions = new HashMap<>();
    private final IntFunction<Transport> choices;

    /**
     * Asks each transport.
     *
     * @param choices which transport connects this rank with another
     * @param maker   the region of a transport; null if it takes none
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

    /**
     * What operations on connections with a peer may be announced with.
     *
     * @return the region; null if data to and from there always goes through slots
     */
    public @Nullable MemoryRegion with(int peer) {
        return regions.get(choices.apply(peer));
    }

    /** No operation uses the memory any more. May be called twice. */
    @Override
    public void close() {
        regions.values().forEach(MemoryRegion::close);
        regions.clear();
    }
}
