package org.millrace.gin;

/**
 * Ends the waits of kernels after their communicator has failed. The kernels wait for room in a queue, for a flush, or
 * for a signal. After a failure these events no longer occur, and NCCL gives a program's kernels no flag to poll. This
 * class detects whether a kernel has descriptors that will not be carried out. On request, it ends the waits, as NCCL's
 * abort flag ends the waits of NCCL's own kernels. A wait then returns although its condition is not met.
 *
 * <p>
 * Descriptors are taken and completed at once, repeatedly, so that flushes end and queues have room. All signals are
 * increased repeatedly, because a kernel may reset a signal and wait once more. The wait of a kernel that polls bytes
 * of a window cannot be ended, because only the kernel knows these bytes.
 */
public final class WaitRelease {

    /**
     * Increment of signals. A wait compares 64, 32 or 16 bits of a signal. At least the first three increments each
     * raise these bits above the awaited value.
     */
    private static final long STEP = 1L << 61 | 1L << 29 | 1L << 13;
    private static final long PERIOD_NANOS = 10_000_000;

    private final GinContexts contexts;
    private volatile boolean awaited;
    private volatile boolean released;
    /** Time of the last increment of the signals. Used only by the agent's thread. */
    private long grown;

    WaitRelease(GinContexts contexts) {
        this.contexts = contexts;
    }

    /** Returns whether a kernel has posted descriptors that were not carried out, before or after the failure. */
    public boolean isAwaited() {
        return awaited;
    }

    /** Ends the kernels' waits, from now on until the communicator is removed. */
    public void release() {
        released = true;
    }

    /** Checks all contexts once. Agent's thread only. */
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
