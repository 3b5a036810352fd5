package org.millrace.gin;

/**
 * What becomes of kernels whose communicator has failed. They wait for room in a queue, for a flush, or for a signal,
 * and none of it comes any more; NCCL gives a program's kernels no flag to look at meanwhile. So this looks whether a
 * kernel has descriptors that nobody will carry out, and, when it is asked to, ends the waits as NCCL's abort flag ends
 * those of NCCL's own kernels: a wait returns, and what was waited for is not there.
 *
 * <p>
 * Descriptors are taken and completed at once, again and again, so that flushes end and queues have room. All signals
 * grow, again and again, since a kernel may set one back and wait once more. What a kernel looks for in a window cannot
 * be ended: nobody but the kernel knows where that is.
 */
public final class WaitRelease {

    /**
     * What signals grow by: a wait of 64, 32 or 16 bits sees more than it asks for, for the next three times at least.
     */
    private static final long STEP = 1L << 61 | 1L << 29 | 1L << 13;
    private static final long PERIOD_NANOS = 10_000_000;

    private final GinContexts contexts;
    private volatile boolean awaited;
    private volatile boolean released;
    /** When signals grew last; the agent's thread alone uses it. */
    private long grown;

    WaitRelease(GinContexts contexts) {
        this.contexts = contexts;
    }

    /** Whether a kernel has posted descriptors that were not carried out, before the failure or after it. */
    public boolean isAwaited() {
        return awaited;
    }

    /** Ends the kernels' waits, from now on until the communicator is removed. */
    public void release() {
        released = true;
    }

    /** One look, on the agent's thread. */
    void look() {
        long now = System.nanoTime();
        boolean grow = released && (grown == 0 || now - grown > PERIOD_NANOS);
        for (GinContext context : contexts.all()) {
            if (context != null) {
                look(context, grow);
            }
        }
        grown = grow ? now : grown;
    }

    private void look(GinContext context, boolean grow) {
        if (!awaited && !context.isDrained()) {
            awaited = true;
        }
        if (released) {
            context.discard();
        }
        if (grow) {
            context.addToSignals(STEP);
        }
    }
}
