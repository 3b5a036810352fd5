package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * One 32-bit index for each peer of a context; indices wrap and are compared by difference.
 *
 * <p>
 * {@code pis}, the places given out, belongs to the kernel alone. {@code cis}, the places that are free again, is
 * written by the proxy alone: its release pairs with the kernel's acquire, which may then write the place, and reuse
 * the source of what was put.
 */
public final class GinIndices extends PolledStruct {
    private final int peers;

    private GinIndices(MemorySegment segment, int peers) {
        super("the indices of a GIN context", segment, (long) peers * Integer.BYTES, Integer.BYTES);
        this.peers = peers;
    }

    /**
     * {@return a view of indices}
     *
     * @param segment exactly 4 bytes for each peer
     * @throws IllegalArgumentException if size or alignment is another
     */
    public static GinIndices of(MemorySegment segment, int peers) {
        return new GinIndices(segment, peers);
    }

    private long at(int peer) {
        return base + (long) Objects.checkIndex(peer, peers) * Integer.BYTES;
    }

    /** {@return an index; later accesses of this thread stay behind it} */
    public int acquire(int peer) {
        return (int) Words.INT.getAcquire(Words.MEMORY, at(peer));
    }

    /** Stores an index after everything this thread did. */
    public void release(int peer, int index) {
        Words.INT.setRelease(Words.MEMORY, at(peer), index);
    }

    /** {@return the index before one was added} */
    public int getAndIncrement(int peer) {
        return (int) Words.INT.getAndAdd(Words.MEMORY, at(peer), 1);
    }

    /** {@return whether an index was as expected, and is now another} */
    public boolean compareAndSet(int peer, int expected, int index) {
        return Words.INT.compareAndSet(Words.MEMORY, at(peer), expected, index);
    }
}
