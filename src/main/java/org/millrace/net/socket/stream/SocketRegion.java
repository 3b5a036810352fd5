package org.millrace.net.socket.stream;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.net.MemoryRegion;
import org.millrace.net.socket.SocketNetwork;

/**
 * Registered memory, and buffers over it, one for each GiB that is used.
 *
 * <p>
 * View {@code i} begins at GiB {@code i} and is as long as a buffer can be (almost 2 GiB), so that a payload of up to 1
 * GiB lies within one view wherever it begins. They belong to the global session: {@code java.nio} then neither takes
 * nor gives back a hold on the user's arena with every call, and the memory may be confined to a thread that is not
 * ours. The price is that nothing notices memory that is freed too early: see
 * {@link org.millrace.net.Network#register}.
 */
public final class SocketRegion implements MemoryRegion {

    private static final int VIEW_SHIFT = 30;
    /** As much as a segment may have to be made a buffer. */
    private static final int LONGEST_VIEW = Integer.MAX_VALUE - 8;

    private final SocketNetwork network;
    private final MemorySegment segment;
    private final int id;
    private final AtomicBoolean closed = new AtomicBoolean();

    /**
     * A region that nothing was sent from yet.
     *
     * @param id smallest number that no other open region of the network has: connections keep their own views in an
     *           array by it
     */
    public SocketRegion(SocketNetwork network, MemorySegment segment, int id) {
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
        this.id = id;
    }

    /** A buffer of the caller's own over a GiB and what follows it. */
    @SuppressWarnings("restricted") // reinterprets the memory that the user gave, within its bounds
    ByteBuffer newView(int index) {
        long offset = (long) index << VIEW_SHIFT;
        long length = Math.min(segment.byteSize() - offset, LONGEST_VIEW);
        return MemorySegment.ofAddress(segment.address() + offset).reinterpret(length).asByteBuffer();
    }

    @Override
    public MemorySegment segment() {
        return segment;
    }

    public int id() {
        return id;
    }

    /** Which view holds a payload that begins at an offset. */
    static int viewIndex(long offset) {
        return (int) (offset >>> VIEW_SHIFT);
    }

    /** Where in its view a payload begins. */
    public static int viewOffset(long offset) {
        return (int) (offset & (1L << VIEW_SHIFT) - 1);
    }

    /** This region, if it may be used by a connection of a network for these bytes; throws otherwise. */
    public static SocketRegion check(MemoryRegion region, SocketNetwork network, long offset, long length) {
        if (!(region instanceof SocketRegion ours) || ours.network != network) {
            throw new IllegalArgumentException("a payload of " + length
                    + " bytes needs memory that was registered with the network of its connection, not " + region);
        }
        if (ours.closed.get()) {
            throw new IllegalStateException(region + " was closed");
        }
        if (offset < 0 || length > ours.segment.byteSize() - offset) {
            throw new IndexOutOfBoundsException(
                    "a payload of " + length + " bytes does not lie within " + region + " at offset " + offset);
        }
        return ours;
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            network.release(this);
        }
    }

    @Override
    public String toString() {
        return "socket region " + id + " of " + segment.byteSize() + " bytes";
    }
}
