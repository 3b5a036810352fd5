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
import org.millrace.abi.KernelArguments;
import org.millrace.agent.Waiting;

/**
 * Launches a communicator's plans. It stores their work, starts the kernels, and frees room in the FIFO when they are
 * complete. A communicator's kernels run one after another on any streams, because operations must use connections in
 * the order of their issue.
 *
 * <p>
 * A launch consists of {@link #hasRoom}, {@link #upload} and {@link #start}, in this order, while the caller holds this
 * object's lock. Actions of the caller between {@code upload} and {@code start}, for example a notification of the
 * proxies, precede everything that the kernel does.
 */
public final class WorkLauncher implements AutoCloseable {

    private static final long FIRST_PARK_NANOS = 10_000;
    private static final Duration MAX_GRACE = Duration.ofSeconds(10);
    /**
     * An event that frees room is recorded each time this fraction of the FIFO (one part in {@value}) was filled. Plans
     * take at most half of the FIFO, so room always becomes free.
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
    /** Actions to run when events on the device are complete, in this order ({@code eventCallbackQueue}). */
    private final Queue<Callback> callbacks = new ArrayDeque<>();
    /** Plans that may run again and have memory. */
    private final Set<KernelPlan> persistent = Collections.newSetFromMap(new IdentityHashMap<>());
    private final Queue<EmulatedKernel> launched = new ArrayDeque<>();
    private @Nullable EmulatedKernel last;
    private @Nullable DeviceStream lastStream;
    private int recorded;
    private boolean drained;
    /** Reason why the communicator had been aborted before the drain; null if it had not. */
    private @Nullable Throwable reasonBeforeDrain;
    private boolean waiting;
    /** While a plan waits for room: time when room was last freed, or when the wait began. */
    private long lastMovedNanos;

    /** @param reached does not wait; once true, it stays true */
    private record Callback(BooleanSupplier reached, Runnable action) {
    }

    /**
     * @param failure        returns the reason why the communicator failed; called when its abort flag is raised
     * @param onFailure      receives the reason why a kernel leaves before it is complete
     * @param proxiesStopped returns whether proxies no longer access any operand; called after {@code onFailure}
     * @param watch          judges kernels without progress
     * @param roomDeadline   maximum time that a wait for room may last without progress; longer than the watch's time
     *                       for a kernel
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
     * Returns whether a plan can be launched now. The caller repeats the call until it returns true.
     *
     * @throws MillraceException if the FIFO stays full for too long, if the communicator is aborted meanwhile, or after
     *                           {@link #drain}
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
     * Stores a plan's work where the kernel will find it. The FIFO must {@linkplain #hasRoom have room}. Returns the
     * arguments to start the kernel with.
     */
    public synchronized KernelArguments upload(KernelPlan plan) {
        return plan.upload(fifo);
    }

    /**
     * Starts a kernel after all tasks of the stream.
     *
     * @param name description of the work; converted to text when something fails
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
     * Returns the exception for a launch after the drain. The abort flag may be reset by now, so a thread that waited
     * for room between two calls receives the reason that the drain found.
     */
    private MillraceException refusal(KernelPlan plan) {
        boolean waited = waiting;
        waiting = false;
        return waited && reasonBeforeDrain != null ? endedWait(plan, reasonBeforeDrain)
                : new MillraceException(plan + ": the communicator is closed");
    }

    private MillraceException endedWait(KernelPlan plan, Throwable reason) {
        return MillraceException.again(plan + ", while it waited for room in " + fifo + ": " + reason.getMessage(),
                reason);
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
            plan.attach(blocks); // the plan's next kernel runs after this one has left the device
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
     * Runs the actions of events that are complete: frees room in the FIFO and plans. If nothing is launched, another
     * caller must call it. Returns whether an action was due.
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
     * Takes responsibility for a plan that will run more than once. The plan's memory is freed after {@link #release},
     * or with the communicator's last kernel at the latest.
     */
    public synchronized void keep(KernelPlan plan) {
        if (drained) {
            plan.free();
        } else {
            persistent.add(plan);
        }
    }

    /** Called when a plan will not run again. Its memory is freed when the kernels launched so far are complete. */
    public synchronized void release(KernelPlan plan) {
        plan.close();
        if (persistent.remove(plan)) {
            EmulatedKernel before = last;
            callbacks.add(new Callback(() -> before == null || before.done(), plan::free));
            poll();
        }
    }

    /**
     * Returns whether the FIFO has room for a plan. Only a full FIFO makes a caller wait, while earlier kernels run.
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
            throw endedWait(plan, reason); // the room was freed by kernels that left
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
     * Stops launching, and returns when no kernel is on the device and the FIFO is empty. The wait is bounded. A kernel
     * leaves without being told when it stalls or when the communicator is aborted, and so does a caller that waits for
     * room.
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
     * Does the same within a time limit.
     *
     * @return the kernels that are still on the device at the end of the limit, in launch order; empty if all have left
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

    /** Stops launching. No kernel is launched after this call. */
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
     * Returns when no kernel that was launched before is on the device. If a kernel neither moves nor leaves within its
     * time limit, the communicator fails, which makes its kernels leave.
     *
     * @return false if a kernel still does not leave: the thread that runs the device is lost, or it is in a pass that
     *         does not end
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

    /** Returns the time to wait for a kernel without progress, in nanoseconds. Normally a kernel leaves earlier. */
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

    /** Removes the communicator from the device. None of its kernels may be there. May be called twice. */
    @Override
    public void close() {
        device.remove(resident);
    }
}
