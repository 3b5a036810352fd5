package org.millrace.net.shm.ring;

import java.lang.foreign.MemorySegment;
import org.millrace.net.MemoryRegion;
import org.millrace.net.shm.ShmNetwork;

/**
 * Registered memory, seen without its session: a copy then asks neither which thread owns the memory nor whether its
 * arena is open, as {@link org.millrace.net.Network#register} has the caller promise both.
 */
public final class ShmRegion implements MemoryRegion {

    private final ShmNetwork network;
    private final MemorySegment segment;
    private final MemorySegment view;
    private volatile boolean closed;

    public ShmRegion(ShmNetwork network, MemorySegment segment) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException(
                    "only native memory can be registered, and this is on the Java heap: allocate it from an Arena");
        }
        if (segment.isReadOnly()) {
            throw new IllegalArgumentException(
                    "memory that is read-only cannot be registered: payloads are also written to it");
        }
        this.network = network;
        this.segment = segment;
        view = unscoped(segment);
    }

    @SuppressWarnings("restricted") // reinterprets the memory that the user gave, within its bounds
    private static MemorySegment unscoped(MemorySegment segment) {
        return MemorySegment.ofAddress(segment.address()).reinterpret(segment.byteSize());
    }

    @Override
    public MemorySegment segment() {
        return segment;
    }

    /** The memory of a region, if a connection of a network may use these bytes of it; throws otherwise. */
    static MemorySegment check(MemoryRegion region, ShmNetwork network, long offset, long bytes) {
        if (!(region instanceof ShmRegion ours) || ours.network != network) {
            throw new IllegalArgumentException("a payload of " + bytes
                    + " bytes needs memory that was registered with the network of its connection, not " + region);
        }
        if (ours.closed) {
            throw new IllegalStateException(region + " was closed");
        }
        if (offset < 0 || bytes > ours.view.byteSize() - offset) {
            throw new IndexOutOfBoundsException(
                    "a payload of " + bytes + " bytes does not lie within " + region + " at offset " + offset);
        }
        return ours.view;
    }

    @Override
    public void close() {
        closed = true;
    }

    @Override
    public String toString() {
        return "shared-memory network's region of " + segment.byteSize() + " bytes";
    }
}
