package org.millrace.device.function;

/** How ranks work together on an operation; by NCCL's names where it has one. */
public enum Algorithm {
    /** Around the channels' rings: the most bandwidth. */
    RING,
    /** Up and down the channels' trees: the shortest way. */
    TREE,
    /** Through the network, which reduces. */
    COLLNET,
    /** Between two ranks. */
    DIRECT,
    /** Each rank alone. */
    LOCAL
}
