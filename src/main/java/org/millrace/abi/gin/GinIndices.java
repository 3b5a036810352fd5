package org.millrace.abi.gin;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.millrace.foreign.PolledStruct;
import org.millrace.foreign.Words;

/**
 * Indices of 32 bits, one for each peer of a GIN context. Indices wrap and are compared by difference.
 *
 * <p>
 * {@code pis} is the total number of places that threads of kernels have reserved in a queue. Only kernels access
 * {@code pis}. {@code cis} is the total number of places that the proxy has freed. Only the proxy writes {@code cis},
 * with release. This release pairs with the kernel's acquire. After the acquire the kernel may write to a freed place
 * again, and may change the source of its earlier put.
 */
public final class GinIndices extends PolledStruct {
    private final int peers;

    private GinIndices(MemorySegment segment, int peers) {
        super("the indices of a GIN context", segment, (long) peers * Integer.BYTES, Integer.BYTES);
        this.peers = peers;
    }

    /**
     * {@return a view of the indices in a segment}
     *
     * @param segment memory of exactly 4 bytes for each peer
     * @throws IllegalArgumentException if the size or the alignment of the segment is wrong
     */
    public static GinIndices of(MemorySegment segment, int peers) {
        return new GinIndices(segment, peers);
    }

    private long at(int peer) {
        return base + (long) Objects.checkIndex(peer, peers) * Integer.BYTES;
    }

    /** {@return the index of a peer; later accesses of this thread happen after this load} */
    public int acquire(int peer) {
        return (int) Words.INT.getAcquire(Words.MEMORY, at(peer));
    }

    /** Stores the index of a peer, after all earlier accesses of this thread. */
    public void release(int peer, int index) {
        Words.INT.setRelease(Words.MEMORY, at(peer), index);
    }

    /**
     * Adds 1 to the index of a peer, atomically.
     *
     * @return the index before the addition
     */
    public int getAndIncrement(int peer) {
        return (int) Words.INT.getAndAdd(Words.MEMORY, at(peer), 1);
    }

    /**
     * Replaces the index of a peer atomically, if it has the expected value.
     *
     * @return whether the index was replaced
     */
    public boolean compareAndSet(int peer, int expected, int index) {
        return Words.INT.compareAndSet(Words.MEMORY, at(peer), expected, index);
    }
}
