package org.millrace.device;

import java.util.Locale;

/** How ranks work together on an operation; by NCCL's names where it has one. */
public enum Algorithm {
    /** Around the channels' rings: the most bandwidth. */
    RING,
    /** Up and down the channels' trees: the shortest way. */
    TREE,
    /** Through the network, which reduces: each rank gives it its elements. */
    COLLNET_DIRECT,
    /** Between two ranks. */
    DIRECT,
    /** Each rank alone. */
    LOCAL,
    /** Through the network, which reduces: one rank of each host gives it the host's sum. */
    COLLNET_CHAIN;

    public boolean isCollNet() {
        return this == COLLNET_DIRECT || this == COLLNET_CHAIN;
    }

    /** {@return its name as NCCL_ALGO has it, in small letters} */
    public String label() {
        return name().replace("_", "").toLowerCase(Locale.ROOT);
    }
}
