package org.millrace.device;

/** The part of a kernel that serves one channel. It corresponds to a thread block on a GPU. */
interface Block {

    /**
     * Called once for each block when the kernel starts, on the device's thread. All earlier tasks of the kernel's
     * stream are then complete.
     */
    default void begin() {}

    /** Does the work that is possible without waiting for a peer. Returns the number of slices moved. */
    int progress();

    boolean done();

    default boolean canRewind() {
        return false;
    }

    /**
     * Prepares the block to do its work again, from the first slice. The block again reserves a place in the order of
     * the blocks that use its connections.
     */
    default void rewind() {
        throw new UnsupportedOperationException(getClass().getSimpleName() + " runs once");
    }

    /**
     * Describes for a message why the block makes no progress: the connection that it waits for, with step and
     * counters.
     */
    String waitingFor();

    /**
     * Two blocks of one work item that run at the same time. Examples are a send and a receive, or the two directions
     * of a tree. On a GPU, one thread block runs both, each with some of its warps.
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
