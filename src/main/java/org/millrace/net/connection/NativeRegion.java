package org.millrace.net.connection;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;

/**
 * Registered memory that CPU threads access by its address. The segment of {@link #view} belongs to no arena. A copy to
 * or from the segment therefore does not check whether the calling thread may access the memory, or whether the memory
 * is still allocated. The caller of {@link org.millrace.net.Network#register} guarantees both conditions.
 */
public class NativeRegion implements MemoryRegion {

    /**
     * The whole user space of a 64-bit process on Linux. Offsets in this segment are addresses. An access is checked
     * only against the limits of the segment.
     */
    public static final MemorySegment ALL_MEMORY = unscoped(0, 1L << 47);

    private final OpenResources network;
    private final MemorySegment segment;
    private final MemorySegment view;
    private final String name;
    private final AtomicBoolean closed = new AtomicBoolean();

    /** Creates a region of a network. The name appears in messages. */
    public NativeRegion(OpenResources network, MemorySegment segment, String name) {
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
        this.name = name;
        view = unscoped(segment.address(), segment.byteSize());
    }

    @SuppressWarnings("restricted") // the new segment has the bounds of the user's memory
    private static MemorySegment unscoped(long address, long bytes) {
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    @Override
    public final MemorySegment segment() {
        return segment;
    }

    /** Returns the same memory in the global scope. */
    public final MemorySegment view() {
        return view;
    }

    /**
     * Memory that is registered with two networks, so that connections of both can use it. The second region may itself
     * be a pair.
     */
    public record Pair(NativeRegion first, MemoryRegion second) implements MemoryRegion {

        @Override
        public MemorySegment segment() {
            return first.segment();
        }

        private MemoryRegion of(OpenResources network) {
            return first.network == network ? first : second instanceof Pair others ? others.of(network) : second;
        }

        @Override
        public void close() {
            first.close();
            second.close();
        }
    }

    /**
     * Returns a region of the given network: the region itself, or the member of a {@link Pair} that belongs to the
     * network. Throws an exception if the network's connections must not use the given bytes of that region.
     */
    public static NativeRegion check(@Nullable MemoryRegion region, OpenResources network, long offset, long bytes) {
        MemoryRegion part = region instanceof Pair pair ? pair.of(network) : region;
        if (!(part instanceof NativeRegion ours) || ours.network != network) {
            throw new IllegalArgumentException("a payload of " + bytes
                    + " bytes needs memory that was registered with the network of its connection, not " + region);
        }
        if (ours.isClosed()) {
            throw new IllegalStateException(region + " was closed");
        }
        if (offset < 0 || bytes > ours.view.byteSize() - offset) {
            throw new IndexOutOfBoundsException(
                    "a payload of " + bytes + " bytes does not lie within " + region + " at offset " + offset);
        }
        return ours;
    }

    public final boolean isClosed() {
        return closed.get();
    }

    @Override
    public final void close() {
        if (closed.compareAndSet(false, true)) {
            release();
        }
    }

    /** Releases the subclass's resources. Called once, when the region is closed. */
    protected void release() {
        // Does nothing, for a subclass without own resources.
    }

    @Override
    public final String toString() {
        return name + " of " + segment.byteSize() + " bytes";
    }
}
