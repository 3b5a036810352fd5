package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import org.millrace.net.shm.Mapping;
import org.millrace.net.shm.SharedHeap;

/** Another rank's heap, which all connections of this process from that rank have mapped once. */
final class PeerHeap implements AutoCloseable {

    private static final Map<String, PeerHeap> ALL = new HashMap<>();

    private final String name;
    private final Mapping opened;
    /** Guarded by the map. */
    private int users;

    private PeerHeap(String name) {
        this.name = name;
        this.opened = SharedHeap.open(name);
    }

    /** @param name as the peer said it */
    static PeerHeap open(String name) {
        synchronized (ALL) {
            PeerHeap heap = ALL.computeIfAbsent(name, PeerHeap::new);
            heap.users++;
            return heap;
        }
    }

    MemorySegment segment() {
        return opened.segment();
    }

    /** How many this process has mapped. */
    static int mapped() {
        synchronized (ALL) {
            return ALL.size();
        }
    }

    /** One connection less; once each. */
    @Override
    public void close() {
        synchronized (ALL) {
            if (--users == 0) {
                ALL.remove(name);
                opened.close();
            }
        }
    }
}
