package org.millrace.device;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.agent.Waiting;
import org.millrace.failure.RepeatedFailure;

/**
 * Launches the plans of a communicator. This class stores the work items of a plan, starts the plan's kernel, and frees
 * the room in the FIFO when the kernel is complete. The kernels of a communicator run one after another, even on
 * different streams, because operations must use a connection in the order of the program's calls.
 *
 * <p>
 * A launch consists of {@link #hasRoom}, {@link #upload} and {@link #start}, in this order. The caller holds this
 * object's lock meanwhile. If the caller notifies the proxies between {@code upload} and {@code start}, the
 * notification precedes everything that the kernel does.
 */
public final class WorkLauncher implements AutoCloseable {

    private static final long FIRST_PARK_NANOS = 10_000;
    private static final Duration MAX_GRACE = Duration.ofSeconds(10);
    /**
     * Number of equal parts of the FIFO ({@value}). Whenever a part is full, an event is recorded. The room of the part
     * is freed when the event is reached. A plan needs at most half of the FIFO, so enough room always becomes free.
     */
    private static final int RECORDED_PART = 8;

    private final EmulatedDevice device;
    private final DeviceCommunicator communicator;
    private final Resident resident;
    private final FunctionTable functions;
    private final Supplier<? extends Throwable> failure;
    private final Supplier<Throwable> reasonToLeave = this::reasonToLeave;
    private final Consumer<? super Throwable> onFailure;
    private final BooleanSupplier proxiesStopped;
    private final EmulatedDevice.KernelWatch watch;
    private final long roomNanos;
    /** Maximum time until the device's thread notices that a kernel has to leave, in nanoseconds. */
    private final long graceNanos;
    private final WorkFifo fifo;
    /**
     * Actions that run when events of the device are reached, in the order of their addition
     * ({@code eventCallbackQueue}).
     */
    private final Queue<Callback> callbacks = new ArrayDeque<>();
    /** Plans that can run again. This launcher frees their memory. */
    private final Set<KernelPlan> persistent = Collections.newSetFromMap(new IdentityHashMap<>());
    private final Queue<EmulatedKernel> launched = new ArrayDeque<>();
    private @Nullable EmulatedKernel last;
    private @Nullable DeviceStream lastStream;
    private int recorded;
    private boolean drained;
    /** Reason for the abort of the communicator, if the abort preceded {@link #stopLaunching}; otherwise null. */
    private @Nullable Throwable reasonBeforeDrain;
    private boolean waiting;
    /** Time when the current wait for room began, or when room was last freed during this wait. */
    private long lastMovedNanos;

    /**
     * An action that waits for a condition.
     *
     * @param reached condition; its evaluation does not block, and once true the condition stays true
     */
    private record Callback(BooleanSupplier reached, Runnable action) {
    }

    /**
     * @param failure        callback that returns the reason why the communicator failed; called when the abort flag is
     *                       set
     * @param onFailure      callback that receives the reason why a kernel leaves before it is complete
     * @param proxiesStopped callback that returns whether proxies no longer access any operand; called after {@code
     * onFailure}
     * @param watch          object that decides how long a kernel without progress may wait
     * @param roomDeadline   maximum time that a plan waits for room without progress of earlier kernels; longer than
     *                       the time after which {@code watch} abandons a kernel
     */
    public WorkLauncher(EmulatedDevice device, DeviceCommunicator communicator, FunctionTable functions,
            Supplier<? extends Throwable> failure, Consumer<? super Throwable> onFailure,
            BooleanSupplier proxiesStopped, EmulatedDevice.KernelWatch watch, Duration roomDeadline) {
        this.device = device;
        this.communicator = communicator;
        this.resident = new Resident(communicator);
        this.functions = functions;
        this.failure = failure;
        this.onFailure = onFailure;
        this.proxiesStopped = proxiesStopped;
        this.watch = watch;
        this.roomNanos = roomDeadline.toNanos();
        this.graceNanos = Math.min(roomNanos, MAX_GRACE.toNanos());
        this.fifo = communicator.fifo();
        this.recorded = fifo.produced();
        device.add(resident);
    }

    /**
     * Returns whether a plan can be launched now. If the result is false, the caller calls this method again until the
     * result is true.
     *
     * @throws MillraceException if the FIFO stays full for too long, if the communicator is aborted during the wait, or
     *                           after {@link #drain}
     */
    public synchronized boolean hasRoom(KernelPlan plan, DeviceStream stream) {
        device.check(stream);
        if (drained) {
            throw refusal(plan);
        }
        boolean givenBack = poll();
        while (!launched.isEmpty() && launched.peek().done()) {
            launched.remove();
        }
        return hasRoom(plan, givenBack);
    }

    /**
     * Stores the work items of a plan where the kernel will read them. The FIFO must {@linkplain #hasRoom have room}.
     * Returns the arguments for {@link #start}.
     */
    public synchronized KernelArguments upload(KernelPlan plan) {
        return plan.upload(fifo);
    }

    /**
     * Starts the kernel of a plan after all tasks of a stream.
     *
     * @param name description of the work; converted to text only for a message
     */
    public synchronized EmulatedKernel start(KernelPlan plan, Object name, KernelArguments arguments,
            DeviceStream stream) {
        EmulatedKernel kernel = kernel(plan, name, arguments);
        launched.add(kernel);
        if (last == null || lastStream == stream || last.done()) {
            device.launch(kernel, stream);
        } else {
            device.launchAfter(last, kernel, stream);
        }
        last = kernel;
        lastStream = stream;
        if (Integer.compareUnsigned(fifo.produced() - recorded, fifo.bytes() / RECORDED_PART) > 0) {
            recorded = fifo.produced();
            giveBackAfter(stream, recorded);
        }
        return kernel;
    }

    /**
     * Returns the exception for a launch after launching has stopped. If the communicator was aborted before launching
     * stopped, a caller that was waiting for room gets the reason for the abort. The reason was recorded when launching
     * stopped. The abort flag does not show this reason, because the flag may have been reset since then.
     */
    private MillraceException refusal(KernelPlan plan) {
        boolean waited = waiting;
        waiting = false;
        return waited && reasonBeforeDrain != null ? endedWait(plan, reasonBeforeDrain)
                : new MillraceException(plan + ": the communicator is closed");
    }

    private MillraceException endedWait(KernelPlan plan, Throwable reason) {
        return RepeatedFailure.of(plan + ", while it waited for room in " + fifo + ": " + reason.getMessage(), reason);
    }

    private EmulatedKernel kernel(KernelPlan plan, Object name, KernelArguments arguments) {
        if (plan.attachment() instanceof Block[] before) {
            return new EmulatedKernel(name, before, reasonToLeave, onFailure, proxiesStopped, watch);
        }
        Block[] blocks = new Block[Long.bitCount(arguments.channelMask())];
        for (int block = 0; block < blocks.length; block++) {
            blocks[block] = new WorkBlock(device, functions, arguments, plan, block);
        }
        if (plan.storage() != KernelArguments.WorkStorage.FIFO) {
            // The plan's next kernel can use these blocks again, because it runs after this kernel has left the device.
            plan.attach(blocks);
        }
        return new EmulatedKernel(name, blocks, reasonToLeave, onFailure, proxiesStopped, watch);
    }

    private @Nullable Throwable reasonToLeave() {
        if (!communicator.aborted()) {
            return null;
        }
        Throwable reason = failure.get();
        return reason == null ? new MillraceException("the communicator was aborted") : reason;
    }

    private void giveBackAfter(DeviceStream stream, int position) {
        EmulatedEvent event = device.newEvent();
        stream.record(event);
        callbacks.add(new Callback(event::isReachedOrFailed, () -> fifo.consume(position)));
    }

    /**
     * Runs the actions whose events have been reached. The actions free room in the FIFO, and they free plans. Each
     * launch calls this method. While no plan is launched, another caller must call it. Returns whether an action has
     * run.
     */
    public synchronized boolean poll() {
        boolean any = false;
        while (!callbacks.isEmpty() && callbacks.peek().reached.getAsBoolean()) {
            callbacks.remove().action.run();
            any = true;
        }
        return any;
    }

    /**
     * Takes over a plan that will run more than once. The launcher frees the plan's memory after {@link #release}, or
     * at the latest when the communicator's last kernel has left.
     */
    public synchronized void keep(KernelPlan plan) {
        if (drained) {
            plan.free();
        } else {
            persistent.add(plan);
        }
    }

    /**
     * Called when a plan will not run again. The plan's memory is freed when all kernels that were launched so far are
     * complete.
     */
    public synchronized void release(KernelPlan plan) {
        plan.close();
        if (persistent.remove(plan)) {
            EmulatedKernel before = last;
            callbacks.add(new Callback(() -> before == null || before.done(), plan::free));
            poll();
        }
    }

    /**
     * Returns whether the FIFO has room for a plan. If the FIFO is full while earlier kernels run, the caller waits and
     * calls this method again.
     *
     * @param givenBack whether room was freed just before this call
     */
    private boolean hasRoom(KernelPlan plan, boolean givenBack) {
        if (plan.fifoBytes() > fifo.bytes() / 2) {
            throw new MillraceException(plan + " has " + plan.fifoBytes() + " bytes of work, more than half of " + fifo
                    + ": raise NCCL_WORK_FIFO_BYTES");
        }
        boolean waited = waiting;
        waiting = false;
        boolean room = fifo.hasRoom(plan.fifoBytes());
        if (room && !waited) {
            return true;
        }
        Throwable reason = reasonToLeave();
        if (reason != null) {
            // The communicator was aborted during the wait. This call fails even if failed kernels have freed room.
            throw endedWait(plan, reason);
        }
        if (room) {
            return true;
        }
        long now = System.nanoTime();
        if (givenBack || !waited) {
            lastMovedNanos = now;
        } else if (now - lastMovedNanos > roomNanos) {
            throw new MillraceException(plan + ": no room in " + fifo + " for " + roomNanos / 1_000_000
                    + " ms: the kernels before it do not complete");
        }
        waiting = true;
        return false;
    }

    /**
     * Stops launching, and waits until no kernel is on the device and the FIFO is empty. The wait is limited, because a
     * stalled kernel or a kernel of an aborted communicator leaves without a request from this method. For the same
     * reason, a caller waits for room only for a limited time.
     *
     * @return false if a kernel does not leave; the memory that it accesses must not be freed
     */
    public boolean drain() {
        stopLaunching();
        if (!awaitKernels()) {
            return false;
        }
        empty();
        return true;
    }

    /**
     * Stops launching, and waits for the kernels as {@link #drain()} does, but at most for the given time.
     *
     * @return kernels that are still on the device when the time has passed, in launch order; empty if all have left
     */
    public List<EmulatedKernel> drain(Duration patience) {
        stopLaunching();
        long end = System.nanoTime() + patience.toNanos();
        while (true) {
            List<EmulatedKernel> left;
            synchronized (this) {
                left = launched.stream().filter(kernel -> !kernel.done()).toList();
            }
            if (left.isEmpty()) {
                empty();
                return left;
            }
            if (System.nanoTime() - end > 0) {
                return left;
            }
            Waiting.pause(FIRST_PARK_NANOS);
        }
    }

    /** Stops launching. No kernel is started after this call. */
    public void stopLaunching() {
        synchronized (this) {
            reasonBeforeDrain = drained ? reasonBeforeDrain : reasonToLeave();
            drained = true;
        }
    }

    private void empty() {
        synchronized (this) {
            while (!callbacks.isEmpty()) {
                callbacks.remove().action.run();
            }
            persistent.forEach(KernelPlan::free);
            persistent.clear();
            recorded = fifo.produced();
            fifo.consume(recorded);
        }
    }

    /**
     * Waits until no kernel that was launched before this call is on the device. If a kernel neither makes progress nor
     * leaves within a time limit, the communicator fails, and all its kernels must leave.
     *
     * @return false if a kernel still does not leave. In this case the thread that runs the device has ended, or does
     *         not return from a pass.
     */
    public boolean awaitKernels() {
        List<EmulatedKernel> kernels;
        synchronized (this) {
            kernels = List.copyOf(launched);
        }
        for (EmulatedKernel kernel : kernels) {
            if (!await(kernel)) {
                onFailure.accept(new MillraceException(kernel + ": it neither moves nor leaves the device within "
                        + patienceNanos() / 1_000_000 + " ms; what is before it on its stream?"));
                if (!await(kernel)) {
                    return false;
                }
            }
        }
        return true;
    }

    /**
     * Returns the maximum time to wait for a kernel that makes no progress, in nanoseconds. A kernel usually leaves
     * earlier.
     */
    private long patienceNanos() {
        return communicator.aborted() ? graceNanos : roomNanos + graceNanos;
    }

    private boolean await(EmulatedKernel kernel) {
        long moved = kernel.lastMoved();
        for (long since = System.nanoTime(); !kernel.done();) {
            long now = System.nanoTime();
            if (kernel.lastMoved() != moved) {
                moved = kernel.lastMoved();
                since = now;
            } else if (now - since > patienceNanos()) {
                return false;
            }
            Waiting.pause(FIRST_PARK_NANOS);
        }
        return true;
    }

    /** Removes the communicator from the device. None of its kernels may be on the device. May be called twice. */
    @Override
    public void close() {
        device.remove(resident);
    }
}
