package org.millrace.transport;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntFunction;
import org.millrace.net.MemoryRegion;

/** A region of each transport that takes memory of the user's. */
final class TransportRegions implements RegisteredMemory {

    private final Map<Transport, MemoryRegion> regions = new HashMap<>();
    private final IntFunction<Transport> choices;

    /**
     * Asks each transport.
     *
     * @param choices says which transport connects this rank with another
     * @param maker   the region of a transport; null if it takes none
     */
    TransportRegions(List<Transport> transports, IntFunction<Transport> choices,
            Function<Transport, MemoryRegion> maker) {
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

    @Override
    public MemoryRegion with(int peer) {
        return regions.get(choices.apply(peer));
    }

    @Override
    public void close() {
        regions.values().forEach(MemoryRegion::close);
        regions.clear();
    }
}
