package org.millrace.device;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.failure.RepeatedFailure;
import org.millrace.foreign.Words;

/**
 * A kernel on the emulated device. It consists of the blocks of one plan, one block per channel. The kernel is complete
 * when all its blocks are done. If the kernel fails, it leaves the device only after the proxies that move its operands
 * have stopped. Otherwise the program could reuse the operands' memory, and a running proxy could overwrite the new
 * content.
 */
public final class EmulatedKernel implements StreamTask {

    private static final Block[] NO_BLOCKS = {};
    private static final VarHandle LAST_MOVED = Words.field(MethodHandles.lookup(), "lastMoved", long.class);

    private final Object name;
    /**
     * Blocks of the kernel. The array is empty after the kernel has left: the host keeps this object longer, and
     * references to the blocks would keep the operands in memory.
     */
    private Block[] blocks;
    private final Supplier<? extends Throwable> abort;
    private final Consumer<? super Throwable> onFailure;
    private final BooleanSupplier proxiesStopped;
    private final EmulatedDevice.KernelWatch watch;
    private final long stallNanos;
    private final boolean timed;
    /** Reason why the kernel must leave before it is complete; null while the blocks run. */
    private @Nullable Throwable leaving;
    private boolean stalled;
    private boolean begun;
    /**
     * Time when the blocks began, a value of {@link System#nanoTime}. Another thread may read it only after it has read
     * {@link #done} as true.
     */
    private long beganAt;
    private volatile boolean done;
    /** Time of the latest progress. Other threads read it through {@link #LAST_MOVED}. */
    private long lastMoved;

    /**
     * @param name           description of the operation; converted to text only for a message, and kept while the
     *                       kernel is on the device
     * @param blocks         blocks of the kernel; the array is not copied
     * @param abort          callback that returns the reason why the blocks must stop, or null; called on every pass
     * @param onFailure      callback that receives the reason why the kernel leaves before it is complete
     * @param proxiesStopped callback that returns whether the proxies have stopped accessing the operands; called after
     *                       {@code onFailure}
     * @param watch          decides whether the kernel is aborted if no block makes progress
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
        leave();
        if (leaving instanceof Error error) {
            throw error;
        }
        throw (RuntimeException) leaving;
    }

    /**
     * Marks the kernel as failed without running it. The host is notified, because an operation that one rank omits
     * never completes on the other ranks.
     */
    @Override
    public void skip(Throwable reason) {
        leave();
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
            leave();
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
        return RepeatedFailure.during(text, reason, name.toString());
    }

    private void leave() {
        blocks = NO_BLOCKS;
        done = true;
    }

    private String waitingFor() {
        for (Block block : blocks) {
            if (!block.done()) {
                return block.waitingFor();
            }
        }
        return "all blocks are done";
    }

    /** Returns the start time of this kernel's blocks; 0 if the blocks have not begun. Valid only if {@link #done}. */
    public long beganAt() {
        return beganAt;
    }

    /**
     * Returns the time when the blocks began or when a block last made progress. A caller can see from a changed value
     * that the kernel makes progress. If end times are recorded, the value of a complete kernel is its end time.
     * Callable from any thread. The access is opaque: it orders no other access.
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
     * Returns whether the kernel has left the device, either complete or failed. If so, its blocks no longer access
     * memory. Callable from any thread. A thread that reads true sees everything that the kernel wrote (volatile).
     */
    @Override
    public boolean done() {
        return done;
    }
}
