package org.millrace.device;

/** One channel's part of a kernel. It corresponds to a thread block on a GPU. */
interface Block {

    /**
     * Called when the kernel starts. Everything before it on the stream is complete. Called once for each block of a
     * kernel, on the device's thread.
     */
    default void begin() {}

    /** Does the work that is possible without waiting for a peer. Returns the number of slices moved. */
    int progress();

    boolean done();

    /** Returns whether the block is done and may do the same work once more. If not, a new block must be created. */
    default boolean canRewind() {
        return false;
    }

    /**
     * Returns to the state before the first slice, if the block supports it. Reserves the place that a new block would
     * reserve.
     */
    default void rewind() {
        throw new UnsupportedOperationException(getClass().getSimpleName() + " runs once");
    }

    /** Describes the event that a block without progress waits for: connection, step and counters. */
    String waitingFor();

    /**
     * Two blocks of one item that run at the same time. A GPU's block splits its warps for such a pair, for example a
     * send and a receive, or the two directions of a tree.
     */
    static final class BlockPair implements Block {

        private final Block first;
        private final Block second;

        public BlockPair(Block first, Block second) {
            this.first = first;
            this.second = second;
        }

        @Override
        public int progress() {
            return (first.done() ? 0 : first.progress()) + (second.done() ? 0 : second.progress());
        }

        @Override
        public boolean done() {
            return first.done() && second.done();
        }

        @Override
        public boolean canRewind() {
            return first.canRewind() && second.canRewind();
        }

        @Override
        public void rewind() {
            first.rewind();
            second.rewind();
        }

        @Override
        public String waitingFor() {
            return first.done() ? second.waitingFor() : first.waitingFor();
        }
    }
}
