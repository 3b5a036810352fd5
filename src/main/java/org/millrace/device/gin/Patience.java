package org.millrace.device.gin;

import org.millrace.gin.agent.GinCommunicator;

/** How a block waits: it spins, yields, and gives up when its communicator fails or its time is over. One block's. */
final class Patience {

    private static final int SPINS = 64;
    /** Passes between two looks at the clock; a power of two. */
    private static final int LOOK = 256;

    private final GinCommunicator communicator;
    private final long nanos;
    private int passes;
    private long deadline;

    Patience(GinCommunicator communicator, long nanos) {
        this.communicator = communicator;
        this.nanos = nanos;
    }

    void begin() {
        passes = 0;
    }

    /** Waits a moment; false when the time is over. */
    boolean lasts() {
        if (passes++ < SPINS) {
            Thread.onSpinWait();
            return true;
        }
        if (communicator.failure() != null) {
            communicator.throwIfFailed();
        }
        if (passes == SPINS + 1) {
            deadline = System.nanoTime() + nanos;
        } else if ((passes & LOOK - 1) == 0) {
            if (passes < 0) {
                passes = SPINS + 1 + LOOK; // after a wrap it has long been waiting
            }
            if (deadline - System.nanoTime() < 0) {
                return false;
            }
        }
        Thread.yield();
        return true;
    }
}
