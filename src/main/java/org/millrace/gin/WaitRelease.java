package org.millrace.gin;

/**
 * Ends the waits of kernels after their communicator has failed. A kernel may wait for a free slot in a queue, for a
 * flush, or for a signal. After a failure, these waits would not end, and NCCL has no flag that a program's kernel
 * could poll. This class detects whether a kernel has posted descriptors that will not be carried out. After
 * {@link #release} it ends the waits, as NCCL's abort flag ends the waits of NCCL's own kernels. A kernel's wait then
 * returns although its condition is not met.
 *
 * <p>
 * Each pass takes all posted descriptors and completes them without carrying them out. Flushes then end, and queues
 * have free slots. All signals are increased periodically, because a kernel may reset a signal and wait again. If a
 * kernel polls bytes of a window, its wait cannot be ended, because only the kernel knows the awaited bytes.
 */
public final class WaitRelease {

    /**
     * Increment of signals. A kernel compares the lowest 64, 32 or 16 bits of a signal with the value that the kernel
     * waits for. The comparison is modulo 2⁶⁴, 2³² or 2¹⁶. A signal has reached the value if it equals the value, or is
     * ahead of the value by less than half of the modulus. Otherwise it is behind the value by at most half of the
     * modulus. The increment is an eighth of the modulus or a little more, for each width. At most four increments
     * therefore move the signal to the value or ahead of it, by less than half of the modulus.
     */
    private static final long STEP = 1L << 61 | 1L << 29 | 1L << 13;
    private static final long PERIOD_NANOS = 10_000_000;

    private final GinContexts contexts;
    private volatile boolean awaited;
    private volatile boolean released;
    /** Time of the latest increment of the signals, as {@link System#nanoTime}; 0 if none. Agent's thread only. */
    private long grown;

    WaitRelease(GinContexts contexts) {
        this.contexts = contexts;
    }

    /** Returns whether any descriptor was not carried out. A kernel may have posted it before or after the failure. */
    public boolean isAwaited() {
        return awaited;
    }

    /** Ends the waits of kernels, from now on until the communicator is removed from its agent. */
    public void release() {
        released = true;
    }

    /**
     * Checks the contexts once. Ends the waits of their kernels if {@link #release} was called. Agent's thread only.
     */
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
