package org.millrace.device;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.CommunicatorException;
import org.millrace.MillraceException;

/**
 * A kernel on the emulated device: the blocks of one operation, one per channel. It is complete when all its blocks
 * are. A kernel that fails leaves the device only after the proxies that move its operands have stopped. The program
 * reclaims its memory then, and an unfinished pass of a proxy could still write there.
 */
public final class EmulatedKernel implements StreamTask {

    private static final VarHandle LAST_MOVED;
    static {
        try {
            LAST_MOVED = MethodHandles.lookup().findVarHandle(EmulatedKernel.class, "lastMoved", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final Object name;
    private final Block[] blocks;
    private final Supplier<? extends Throwable> abort;
    private final Consumer<? super Throwable> onFailure;
    private final BooleanSupplier proxiesStopped;
    private final EmulatedDevice.KernelWatch watch;
    private final long stallNanos;
    private final boolean timed;
    /** Reason why the blocks no longer run; null while they run. */
    private @Nullable Throwable leaving;
    private boolean stalled;
    private boolean begun;
    /** Start time of the blocks; valid for threads that first read {@link #done} as true. */
    private long beganAt;
    private volatile boolean done;
    /** Accessed through {@link #LAST_MOVED} where another thread reads it. */
    private long lastMoved;

    /**
     * @param name           description of the operation; converted to text when something fails, and kept while the
     *                       kernel is on the device
     * @param blocks         not copied
     * @param abort          returns the reason why blocks should leave, or null; called on every pass
     * @param onFailure      receives the reason why the kernel leaves before it is complete
     * @param proxiesStopped returns whether the proxies, after {@code onFailure}, have stopped accessing the operands
     * @param watch          judges the kernel if none of its blocks moves a slice
     */
    public EmulatedKernel(Object name, Block[] blocks, Supplier<? extends Throwable> abort,
            Consumer<? super Throwable> onFailure, BooleanSupplier proxiesStopped, EmulatedDevice.KernelWatch watch) {
        this.name = name;
        this.blocks = blocks;
        this.abort = abort;
        this.onFailure = onFailure;
        this.proxiesStopped = proxiesStopped;
        this.watch = watch;
        this.stallNanos = watch.stallNanos();
        this.timed = watch.timesKernels();
    }

    @Override
    public int progress() {
        if (leaving == null) {
            try {
                return runBlocks();
            } catch (Throwable failure) {
                leaving = failure;
                onFailure.accept(failure);
            }
        }
        if (!proxiesStopped.getAsBoolean()) {
            return 0;
        }
        done = true;
        if (leaving instanceof Error error) {
            throw error;
        }
        throw (RuntimeException) leaving;
    }

    /** An operation that one rank omits is lost for all ranks, so the host is notified. */
    @Override
    public void skip(Throwable reason) {
        done = true;
        onFailure.accept(reason);
    }

    private int runBlocks() {
        Throwable reason = abort.get();
        if (reason != null) {
            throw left(reason);
        }
        if (!begun) {
            begun = true;
            for (Block block : blocks) {
                block.begin();
            }
            beganAt = System.nanoTime();
            LAST_MOVED.setOpaque(this, beganAt);
        }
        int moved = 0;
        boolean allDone = true;
        for (Block block : blocks) {
            if (!block.done()) {
                moved += block.progress();
                allDone &= block.done();
            }
        }
        if (stalled && (moved > 0 || allDone)) {
            stalled = false;
            watch.moved();
        }
        if (allDone) {
            if (timed) {
                LAST_MOVED.setOpaque(this, System.nanoTime());
            }
            done = true;
        } else {
            watch(moved);
        }
        return moved;
    }

    private void watch(int moved) {
        long now = System.nanoTime();
        if (moved > 0) {
            LAST_MOVED.setOpaque(this, now);
        } else if (now - lastMoved > stallNanos) {
            stalled = true;
            MillraceException verdict = watch.judge(name, lastMoved, this::waitingFor);
            if (verdict != null) {
                throw verdict;
            }
        }
    }

    private MillraceException left(Throwable reason) {
        String text = name + ": " + reason.getMessage();
        return reason instanceof CommunicatorException known ? known.during(text, name.toString())
                : MillraceException.again(text, reason);
    }

    private String waitingFor() {
        for (Block block : blocks) {
            if (!block.done()) {
                return block.waitingFor();
            }
        }
        return "all blocks are done";
    }

    /** Returns the start time of the blocks of a kernel that is {@link #done}; 0 if they never started. */
    public long beganAt() {
        return beganAt;
    }

    /**
     * Returns the time when a block last moved something or began. The number changes from time to time while the
     * kernel moves. If kernels are timed, an ended kernel returns its end time. Callable from any thread (opaque
     * access).
     */
    public long lastMoved() {
        return (long) LAST_MOVED.getOpaque(this);
    }

    /** Returns whether the blocks have begun. Callable from any thread. */
    public boolean begun() {
        return lastMoved() != 0;
    }

    @Override
    public String toString() {
        return String.valueOf(name);
    }

    /**
     * Returns whether the kernel has left the device, complete or not. If so, its blocks no longer access memory.
     * Callable from any thread. A thread that reads true sees everything that the kernel wrote (volatile).
     */
    @Override
    public boolean done() {
        return done;
    }
}
