package org.millrace.device;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.abi.KernelArguments;

/**
 * Launches a communicator's plans: places their work, starts the kernels, and takes the FIFO's room back when they are
 * complete. A communicator's kernels run one after another, whatever streams they are on: connections are used in the
 * order in which operations were issued.
 *
 * <p>
 * A launch is {@link #hasRoom}, {@link #upload}, {@link #start}, in this order, while the caller holds this object's
 * lock. What the caller does between the last two, for instance telling the proxies, comes before all that the kernel
 * does.
 */
public final class WorkLauncher implements AutoCloseable {

    private static final long FIRST_PARK_NANOS = 10_000;
    private static final Duration MOST_GRACE = Duration.ofSeconds(10);
    /**
     * An event is recorded for the FIFO's room whenever this part of it was filled; plans take half of it at most, so
     * room always comes.
     */
    private static final int RECORDED_PART = 8;

    private final EmulatedDevice device;
    private final DeviceCommunicator communicator;
    private final Resident resident;
    private final FunctionTable functions;
    private final Supplier<? extends Throwable> failure;
    private final Supplier<Throwable> reasonToLeave = this::reasonToLeave;
    private final Consumer<? super Throwable> onFailure;
    private final BooleanSupplier proxiesStand;
    private final EmulatedDevice.KernelWatch watch;
    private final long roomNanos;
    /** How long the thread that runs the device may take to see that a kernel has to leave. */
    private final long graceNanos;
    private final WorkFifo fifo;
    /** What is to be done when something on the device is complete, in that order ({@code eventCallbackQueue}). */
    private final Queue<Callback> callbacks = new ArrayDeque<>();
    /** Plans that may be run again, and have memory. */
    private final Set<KernelPlan> persistent = Collections.newSetFromMap(new IdentityHashMap<>());
    private final Queue<EmulatedKernel> launched = new ArrayDeque<>();
    private @Nullable EmulatedKernel last;
    private @Nullable DeviceStream lastStream;
    private int recorded;
    private boolean drained;
    /** Why the communicator had been aborted by then; null if it had not. */
    private @Nullable Throwable reasonOfDrain;
    private boolean waiting;
    /** While a plan waits for room: when some was last given back, or when it began to wait. */
    private long lastMovedNanos;

    /** @param reached does not wait; once true it stays so */
    private record Callback(BooleanSupplier reached, Runnable action) {
    }

    /**
     * @param failure      why the communicator failed; asked when its abort flag is up
     * @param onFailure    learns why a kernel leaves before it is complete
     * @param proxiesStand whether proxies touch no operand any more; asked behind {@code onFailure}
     * @param watch        judges kernels that stand still
     * @param roomDeadline how long a wait for room may go without progress: longer than the watch lets a kernel stand
     */
    public WorkLauncher(EmulatedDevice device, DeviceCommunicator communicator, FunctionTable functions,
            Supplier<? extends Throwable> failure, Consumer<? super Throwable> onFailure, BooleanSupplier proxiesStand,
            EmulatedDevice.KernelWatch watch, Duration roomDeadline) {
        this.device = device;
        this.communicator = communicator;
        this.resident = new Resident(communicator);
        this.functions = functions;
        this.failure = failure;
        this.onFailure = onFailure;
        this.proxiesStand = proxiesStand;
        this.watch = watch;
        this.roomNanos = roomDeadline.toNanos();
        this.graceNanos = Math.min(roomNanos, MOST_GRACE.toNanos());
        this.fifo = communicator.fifo();
        this.recorded = fifo.produced();
        device.add(resident);
    }

    /**
     * Whether a plan can be launched now. To be called again and again until it can.
     *
     * @throws MillraceException if the FIFO stays full for too long, if the communicator is aborted meanwhile, or
     *                           behind {@link #drain}
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
     * Puts a plan's work, for which there {@linkplain #hasRoom is room}, where the kernel will find it; returns what to
     * start it with.
     */
    public synchronized KernelArguments upload(KernelPlan plan) {
        return plan.upload(fifo);
    }

    /**
     * Starts a kernel behind what the stream holds.
     *
     * @param name what it does: its text is asked for when something fails
     */
    public synchronized EmulatedKernel start(KernelPlan plan, Object name, KernelArguments arguments,
            DeviceStream stream) {
        EmulatedKernel kernel = kernel(plan, name, arguments);
        launched.add(kernel);
        if (last == null || lastStream == stream || last.done()) {
            device.launch(kernel, stream);
        } else {
            device.launchBehind(last, kernel, stream);
        }
        last = kernel;
        lastStream = stream;
        if (Integer.compareUnsigned(fifo.produced() - recorded, fifo.bytes() / RECORDED_PART) > 0) {
            recorded = fifo.produced();
            giveBackAfter(stream, recorded);
        }
        return kernel;
    }

    /** The flag may be gone by now: a thread that waits for room between two looks is told what the drain found. */
    private MillraceException refusal(KernelPlan plan) {
        boolean waited = waiting;
        waiting = false;
        return waited && reasonOfDrain != null ? leftWaiting(plan, reasonOfDrain)
                : new MillraceException(plan + ": the communicator is closed");
    }

    private MillraceException leftWaiting(KernelPlan plan, Throwable reason) {
        return MillraceException.again(plan + ", while it waited for room in " + fifo + ": " + reason.getMessage(),
                reason);
    }

    private EmulatedKernel kernel(KernelPlan plan, Object name, KernelArguments arguments) {
        if (plan.attachment() instanceof Block[] before) {
            return new EmulatedKernel(name, before, reasonToLeave, onFailure, proxiesStand, watch);
        }
        Block[] blocks = new Block[Long.bitCount(arguments.channelMask())];
        for (int block = 0; block < blocks.length; block++) {
            blocks[block] = new WorkBlock(device, functions, arguments, plan, block);
        }
        if (plan.storage() != KernelArguments.WorkStorage.FIFO) {
            plan.attach(blocks); // its next kernel runs when this one has left the device
        }
        return new EmulatedKernel(name, blocks, reasonToLeave, onFailure, proxiesStand, watch);
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
     * Does what events have made due: gives room in the FIFO back, and frees plans. Where nothing is launched somebody
     * else has to call it. Returns whether anything was due.
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
     * Takes a plan that will be run more than once into care: its memory is freed after {@link #release}, and with the
     * last kernel of the communicator at the latest.
     */
    public synchronized void keep(KernelPlan plan) {
        if (drained) {
            plan.free();
        } else {
            persistent.add(plan);
        }
    }

    /** A plan will not be run any more: its memory is freed when the kernels that were launched so far are complete. */
    public synchronized void release(KernelPlan plan) {
        plan.close();
        if (persistent.remove(plan)) {
            EmulatedKernel before = last;
            callbacks.add(new Callback(() -> before == null || before.done(), plan::free));
            poll();
        }
    }

    /** Only a full FIFO makes a caller wait, while the kernels before it run. */
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
            throw leftWaiting(plan, reason); // the room is that of kernels that left
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
     * Launches nothing any more, and returns when no kernel is on the device and nothing is left in the FIFO. Bounded:
     * a kernel leaves by itself when it stalls, or when the communicator is aborted, and so does a caller who waits for
     * room.
     *
     * @return false if a kernel does not leave: what it touches must not be freed
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
     * The same within a time.
     *
     * @return the kernels that are still on the device then, first to last; empty if all is done
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
            LockSupport.parkNanos(FIRST_PARK_NANOS);
        }
    }

    /** Launches nothing any more: what has been launched by now is all. */
    public void stopLaunching() {
        synchronized (this) {
            reasonOfDrain = drained ? reasonOfDrain : reasonToLeave();
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
     * Returns when no kernel that was launched before is on the device. Where none of them moves or leaves for longer
     * than a kernel may, the communicator fails, and so makes them leave.
     *
     * @return false if one does not leave even so: the thread that runs the device is lost, or in a pass that does not
     *         end
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

    /** A kernel leaves by itself before that, or when it is told to. */
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
            LockSupport.parkNanos(FIRST_PARK_NANOS);
        }
        return true;
    }

    /** The device forgets the communicator: no kernel of it may be there. Closing twice is allowed. */
    @Override
    public void close() {
        device.remove(resident);
    }
}
