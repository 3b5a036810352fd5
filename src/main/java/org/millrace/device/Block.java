package org.millrace.device;

/** One channel's part of a kernel: what a thread block is on a GPU. */
interface Block {

    /**
     * The kernel starts: everything before it on the stream is complete. Called once for each block of a kernel, on the
     * device's thread.
     */
    default void begin() {}

    /** Does what can be done without waiting for a peer; returns the number of slices moved. */
    int progress();

    boolean done();

    /** Whether it is done, and may do the same once more; otherwise a new one has to be made. */
    default boolean canRewind() {
        return false;
    }

    /** Goes back to where it had not begun, if it can, and takes the place that a new block would take. */
    default void rewind() {
        throw new UnsupportedOperationException(getClass().getSimpleName() + " runs once");
    }

    /** What a block that does not get on waits for: connection, step and counters. */
    String waitingFor();

    /**
     * Two blocks of one item that go on at the same time: what a GPU's block splits its warps for, as a send and a
     * receive, or the two ways of a tree.
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
