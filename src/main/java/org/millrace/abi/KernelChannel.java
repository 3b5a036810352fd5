package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevChannel;
import org.millrace.foreign.Words;

/**
 * {@code ncclDevChannel}: the data of a channel for kernels. It contains this rank's neighbors in each algorithm.
 *
 * <pre>
 *    0       8      12     16          24            32      36    40      44   48        60             80
 *    +-------+------+------+-----------+-------------+-------+-----+-------+----+---------+--------------+-- - - --+
 *    | peers | prev | next | userRanks | rankToIndex | index | pad | depth | up | down[3] | collnetChain | coll..  |
 *    +-------+------+------+-----------+-------------+-------+-----+-------+----+---------+--------------+-- - - --+
 *             ring ............................................... tree ................
 * </pre>
 *
 * <p>
 * The host writes the struct before it launches the first kernel. After that the struct is only read, so all accesses
 * are plain. A collective network is a peer, too. Its peer number follows the number of the last rank. Facts: NCCL 2.30
 * {@code device.h}. Up to NCCL 2.28, {@code ncclRing} had no {@code rankToIndex}. Millrace does not set {@code
 * rankToIndex}.
 */
public final class KernelChannel {
    /** Size of the struct in bytes, which is the distance to the struct of the next channel. */
    public static final long BYTES = ncclDevChannel.sizeof();
    public static final long ALIGNMENT = 16;
    /** Maximum number of children of a rank in a tree. */
    public static final int MAX_CHILDREN = device_h.NCCL_MAX_TREE_ARITY();
    /** Index of the connection for collectives, among a channel's connections to a peer. */
    public static final int COLLECTIVE = 0;
    /** Index of the connection for sends and receives, among a channel's connections to a peer. */
    public static final int POINT_TO_POINT = 1;
    /** Rank number that marks a missing neighbor. */
    public static final int NO_RANK = -1;

    private static final long PREVIOUS = offset(groupElement("ring"), groupElement("prev"));
    private static final long NEXT = offset(groupElement("ring"), groupElement("next"));
    private static final long USER_RANKS = offset(groupElement("ring"), groupElement("userRanks"));
    private static final long INDEX = offset(groupElement("ring"), groupElement("index"));
    private static final long DEPTH = offset(groupElement("tree"), groupElement("depth"));
    private static final long UP = offset(groupElement("tree"), groupElement("up"));
    private static final long DOWN = offset(groupElement("tree"), groupElement("down"));
    private static final long CHAIN_UP = offset(groupElement("collnetChain"), groupElement("up"));
    private static final long CHAIN_DOWN = offset(groupElement("collnetChain"), groupElement("down"));
    private static final long NETWORK = offset(groupElement("collnetDirect"), groupElement("out"));

    private final MemorySegment segment;

    private KernelChannel(MemorySegment segment) {
        this.segment = segment;
    }

    /** {@return a view of a channel of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static KernelChannel of(MemorySegment segment) {
        return new KernelChannel(Words.checked("ncclDevChannel", segment, BYTES, ALIGNMENT));
    }

    /**
     * Sets this rank's position in the ring.
     *
     * @param previous  rank before this rank in the ring
     * @param next      rank after this rank in the ring
     * @param userRanks address of an array with the numbers of all ranks in ring order, starting with this rank
     * @param index     index of this rank in the ring
     */
    public void ring(int previous, int next, long userRanks, int index) {
        Words.INT.set(segment, PREVIOUS, previous);
        Words.INT.set(segment, NEXT, next);
        Words.LONG.set(segment, USER_RANKS, userRanks);
        Words.INT.set(segment, INDEX, index);
    }

    /**
     * Sets this rank's neighbors in the tree.
     *
     * @param depth depth of the tree in hops: the logarithm of the number of ranks to base 2, rounded down
     * @param up    the parent rank, or {@link #NO_RANK}
     * @param down  {@link #MAX_CHILDREN} elements: the child ranks, and then {@link #NO_RANK}
     */
    public void tree(int depth, int up, int... down) {
        Words.INT.set(segment, DEPTH, depth);
        Words.INT.set(segment, UP, up);
        for (int i = 0; i < MAX_CHILDREN; i++) {
            Words.INT.set(segment, DOWN + (long) i * Integer.BYTES, i < down.length ? down[i] : NO_RANK);
        }
    }

    /** Sets the peer number of the collective network. */
    public void network(int peer) {
        Words.INT.set(segment, NETWORK, peer);
    }

    /**
     * Sets this rank's neighbors in the chain of its host's ranks. The collective network is above the top rank of the
     * chain.
     *
     * @param up   the rank above this rank, the peer number of the collective network, or {@link #NO_RANK}
     * @param down the rank below this rank, or {@link #NO_RANK}
     */
    public void networkChain(int up, int down) {
        Words.INT.set(segment, CHAIN_UP, up);
        Words.INT.set(segment, CHAIN_DOWN, down);
        for (int i = 1; i < MAX_CHILDREN; i++) {
            Words.INT.set(segment, CHAIN_DOWN + (long) i * Integer.BYTES, NO_RANK);
        }
    }

    /**
     * {@return the rank above this rank in the chain of its host, or the peer number of the collective network, or
     * {@link #NO_RANK}}
     */
    public int networkChainUp() {
        return (int) Words.INT.get(segment, CHAIN_UP);
    }

    /** {@return the rank below this rank in the chain of its host, or {@link #NO_RANK}} */
    public int networkChainDown() {
        return (int) Words.INT.get(segment, CHAIN_DOWN);
    }

    /** {@return the rank before this rank in the ring} */
    public int previous() {
        return (int) Words.INT.get(segment, PREVIOUS);
    }

    /** {@return the rank after this rank in the ring} */
    public int next() {
        return (int) Words.INT.get(segment, NEXT);
    }

    /** {@return the address of an array with the numbers of all ranks in ring order, starting with this rank} */
    public long userRanks() {
        return (long) Words.LONG.get(segment, USER_RANKS);
    }

    /** {@return this rank's index in the ring} */
    public int index() {
        return (int) Words.INT.get(segment, INDEX);
    }

    /** {@return the depth of the tree in hops: the logarithm of the number of ranks to base 2, rounded down} */
    public int depth() {
        return (int) Words.INT.get(segment, DEPTH);
    }

    /** {@return the parent of this rank in the tree, or {@link #NO_RANK}} */
    public int up() {
        return (int) Words.INT.get(segment, UP);
    }

    /**
     * {@return a child of this rank in the tree, or {@link #NO_RANK} if the child is missing}
     *
     * @param child index of the child, 0 to {@link #MAX_CHILDREN} - 1
     */
    public int down(int child) {
        return (int) Words.INT.get(segment, DOWN + (long) child * Integer.BYTES);
    }

    /** {@return the peer number of the collective network, or {@link #NO_RANK}} */
    public int network() {
        return (int) Words.INT.get(segment, NETWORK);
    }

    private static long offset(PathElement... path) {
        return ncclDevChannel.layout().byteOffset(path);
    }
}
