package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevChannel;

/**
 * {@code ncclDevChannel}: a channel as kernels see it, which is this rank's neighbours in each algorithm.
 *
 * <pre>
 *    0       8      12     16          24      28      32      36   40            52             72
 *    +-------+------+------+-----------+-------+-------+-------+----+-------------+--------------+--- - - ---+
 *    | peers | prev | next | userRanks | index |  pad  | depth | up | down[3]     | collnetChain | collnet.. |
 *    +-------+------+------+-----------+-------+-------+-------+----+-------------+--------------+--- - - ---+
 *             ring .................................... tree .....................
 * </pre>
 *
 * <p>
 * Written by the host before the first kernel is launched, and only read after that: all accesses are plain. A network
 * that reduces is a peer, too: its number comes behind those of the ranks. Facts: NCCL 2.28 {@code device.h}.
 */
public final class KernelChannel {
    /** The struct's size: its distance from the next channel's. */
    public static final long BYTES = ncclDevChannel.sizeof();
    public static final long ALIGNMENT = 16;
    /** The most ranks below one in a tree. */
    public static final int MAX_CHILDREN = device_h.NCCL_MAX_TREE_ARITY();
    /** Index of a channel's connections for collectives. */
    public static final int COLLECTIVE = 0;
    /** Index of a channel's connections for sends and receives. */
    public static final int POINT_TO_POINT = 1;
    /** Number of a neighbour that there is not. */
    public static final int NOBODY = -1;

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
     * Says this rank's place in the ring.
     *
     * @param userRanks address of all ranks' numbers as the ring passes them, from this one on
     */
    public void ring(int previous, int next, long userRanks, int index) {
        Words.INT.set(segment, PREVIOUS, previous);
        Words.INT.set(segment, NEXT, next);
        Words.LONG.set(segment, USER_RANKS, userRanks);
        Words.INT.set(segment, INDEX, index);
    }

    /**
     * Says this rank's place in the tree.
     *
     * @param depth ranks between the root and the farthest leaf
     * @param up    the rank above, or {@link #NOBODY}
     * @param down  the ranks below, {@link #MAX_CHILDREN} of them, {@link #NOBODY} behind the last
     */
    public void tree(int depth, int up, int... down) {
        Words.INT.set(segment, DEPTH, depth);
        Words.INT.set(segment, UP, up);
        for (int i = 0; i < MAX_CHILDREN; i++) {
            Words.INT.set(segment, DOWN + (long) i * Integer.BYTES, i < down.length ? down[i] : NOBODY);
        }
    }

    /** Says who reduces. */
    public void network(int peer) {
        Words.INT.set(segment, NETWORK, peer);
    }

    /**
     * Says this rank's place in the chain of its host, at whose top a network reduces.
     *
     * @param up   the rank above, or number of the network, or {@link #NOBODY}
     * @param down the rank below, or {@link #NOBODY}
     */
    public void networkChain(int up, int down) {
        Words.INT.set(segment, CHAIN_UP, up);
        Words.INT.set(segment, CHAIN_DOWN, down);
        for (int i = 1; i < MAX_CHILDREN; i++) {
            Words.INT.set(segment, CHAIN_DOWN + (long) i * Integer.BYTES, NOBODY);
        }
    }

    /** {@return the rank above this one in its host's chain, or number of the network, or {@link #NOBODY}} */
    public int networkChainUp() {
        return (int) Words.INT.get(segment, CHAIN_UP);
    }

    /** {@return the rank below this one in its host's chain, or {@link #NOBODY}} */
    public int networkChainDown() {
        return (int) Words.INT.get(segment, CHAIN_DOWN);
    }

    /** {@return the rank before this one in the ring} */
    public int previous() {
        return (int) Words.INT.get(segment, PREVIOUS);
    }

    /** {@return the rank behind this one in the ring} */
    public int next() {
        return (int) Words.INT.get(segment, NEXT);
    }

    /** {@return address of the ring's ranks, from this one on} */
    public long userRanks() {
        return (long) Words.LONG.get(segment, USER_RANKS);
    }

    /** {@return this rank's number in the ring} */
    public int index() {
        return (int) Words.INT.get(segment, INDEX);
    }

    /** {@return ranks between the tree's root and its farthest leaf} */
    public int depth() {
        return (int) Words.INT.get(segment, DEPTH);
    }

    /** {@return the rank above this one in the tree, or {@link #NOBODY}} */
    public int up() {
        return (int) Words.INT.get(segment, UP);
    }

    /**
     * {@return a rank below this one in the tree, or {@link #NOBODY}}
     *
     * @param child 0 to {@link #MAX_CHILDREN} - 1
     */
    public int down(int child) {
        return (int) Words.INT.get(segment, DOWN + (long) child * Integer.BYTES);
    }

    /** {@return number of the network that reduces, or {@link #NOBODY}} */
    public int network() {
        return (int) Words.INT.get(segment, NETWORK);
    }

    private static long offset(PathElement... path) {
        return ncclDevChannel.layout().byteOffset(path);
    }
}
