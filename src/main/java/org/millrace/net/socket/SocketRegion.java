package org.millrace.net.socket;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;

import org.millrace.net.MemoryRegion;

/**
 * Registered memory: buffers over it, one for each GiB.
 *
 * <p>View {@code i} begins at GiB {@code i} and is as long as a buffer can be (2 GiB less a byte), so that a payload of up to 1 GiB lies within one view
 * wherever it begins. The views belong to the global session: {@code java.nio} then neither takes nor gives back a hold on the user's arena with every call,
 * and the memory may be confined to a thread that is not ours. The price is that nothing notices memory that is freed too early: see
 * {@link org.millrace.net.Network#register}.
 */
final class SocketRegion implements MemoryRegion {

    private static final int VIEW_SHIFT = 30;

    private final SocketNetwork network;
    private final MemorySegment segment;
    private final ByteBuffer[] views;
    private final int id;
    private final AtomicBoolean closed = new AtomicBoolean();

    /**
     * Makes the views.
     *
     * @param id smallest number that no other open region of the network has: connections keep their own views in an array by it
     */
    SocketRegion(SocketNetwork network, MemorySegment segment, int id) {
        if (!segment.isNative()) {
            throw new IllegalArgumentException("only native memory can be registered, and this is on the Java heap: allocate it from an Arena");
        }
        if (segment.isReadOnly()) {
            throw new IllegalArgumentException("memory that is read-only cannot be registered: payloads are also written to it");
        }
        this.network = network;
        this.segment = segment;
        this.id = id;
        views = new ByteBuffer[(int) (segment.byteSize() + (1L << VIEW_SHIFT) - 1 >>> VIEW_SHIFT)];
        for (int i = 0; i < views.length; i++) {
            views[i] = globalView((long) i << VIEW_SHIFT);
        }
    }

    @SuppressWarnings("restricted") // reinterprets the memory that the user gave, within its bounds
    private ByteBuffer globalView(long offset) {
        long length = Math.min(segment.byteSize() - offset, Integer.MAX_VALUE);
        return MemorySegment.ofAddress(segment.address() + offset).reinterpret(length).asByteBuffer();
    }

    @Override
    public MemorySegment segment() {
        return segment;
    }

    int id() {
        return id;
    }

    int viewCount() {
        return views.length;
    }

    /** Which view holds a payload that begins at an offset. */
    static int viewIndex(long offset) {
        return (int) (offset >>> VIEW_SHIFT);
    }

    /** Where in its view a payload begins. */
    static int viewOffset(long offset) {
        return (int) (offset & (1L << VIEW_SHIFT) - 1);
    }

    /** A view with a position and limit of its own. */
    ByteBuffer duplicate(int view) {
        return views[view].duplicate();
    }

    /** This region, if it may be used by a connection of a network for these bytes; throws otherwise. */
    static SocketRegion check(MemoryRegion region, SocketNetwork network, long offset, long length) {
        if (!(region instanceof SocketRegion ours) || ours.network != network) {
            throw new IllegalArgumentException("a payload of " + length + " bytes needs memory that was registered with the network of its connection, not "
                    + region);
        }
        if (ours.closed.get()) {
            throw new IllegalStateException(region + " was closed");
        }
        if (offset < 0 || length > ours.segment.byteSize() - offset) {
            throw new IndexOutOfBoundsException("a payload of " + length + " bytes does not lie within " + region + " at offset " + offset);
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
