package org.millrace.gin;

/**
 * Tells kernels how far the agent is with their descriptors where they see it sooner than in the agent's memory: in
 * that of their GPU. A kernel reads the index each time that it posts a descriptor, which takes a microsecond across
 * PCIe.
 */
public interface IndexStore {

    /**
     * Begins to store an index. Those of one peer get there in their order, and behind everything that this thread did
     * before.
     *
     * @param peer  whose queue
     * @param index of the first descriptor that is not complete
     * @return false if too much is under way: the agent asks again
     */
    boolean begin(int peer, int index);

    /**
     * Whether all that was begun is there.
     *
     * @return false while some is under way
     */
    boolean isSettled();
}
