package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * One 32-bit index for each peer of a context. Indices wrap and are compared by difference.
 *
 * <p>
 * {@code pis} counts the places handed out, and belongs to the kernel alone. {@code cis} counts the places that are
 * free again, and only the proxy writes it. The proxy's release pairs with the kernel's acquire. After the acquire the
 * kernel may write the place again and reuse the source of the put.
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
     * @throws IllegalArgumentException if its size or alignment differs
     */
    public static GinIndices of(MemorySegment segment, int peers) {
        return new GinIndices(segment, peers);
    }

    private long at(int peer) {
        return base + (long) Objects.checkIndex(peer, peers) * Integer.BYTES;
    }

    /** {@return an index; later accesses of this thread stay after this load} */
    public int acquire(int peer) {
        return (int) Words.INT.getAcquire(Words.MEMORY, at(peer));
    }

    /** Stores an index after all earlier accesses of this thread. */
    public void release(int peer, int index) {
        Words.INT.setRelease(Words.MEMORY, at(peer), index);
    }

    /**
     * Adds 1 to an index.
     *
     * @return the index before the addition
     */
    public int getAndIncrement(int peer) {
        return (int) Words.INT.getAndAdd(Words.MEMORY, at(peer), 1);
    }

    /**
     * Replaces an index if it has the expected value.
     *
     * @return whether the index was replaced
     */
    public boolean compareAndSet(int peer, int expected, int index) {
        return Words.INT.compareAndSet(Words.MEMORY, at(peer), expected, index);
    }
}
