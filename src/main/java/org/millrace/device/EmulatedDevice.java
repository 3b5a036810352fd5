package org.millrace.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Device;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.StagingMemory;
import org.millrace.agent.Agent;
import org.millrace.agent.HelpedAgent;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.device.StreamTask.Work;
import org.millrace.element.CopiedSegments;
import org.millrace.net.shm.SharedHeap;

/**
 * The emulated device. Its memory is host memory. Its streams are run by the thread that runs this agent, one thread at
 * a time. "The device's thread" is the thread that currently runs them.
 */
public final class EmulatedDevice implements Device, Agent {

    private static final long ALIGNMENT = 64;

    private final String name;
    private final int rank;
    private final Duration roomDeadline;
    private final Duration closeDeadline;
    private final AtomicInteger streamCount = new AtomicInteger();
    private final StagingMemory staging = new StagingMemory((bytes, arena) -> arena.allocate(bytes, ALIGNMENT));
    /**
     * Open streams. The array is copied on each change, because any thread changes it and the device's thread reads it.
     */
    private volatile EmulatedStream[] streams = {};
    /** Communicators with kernels on this device. The array is copied on each change, like {@link #streams}. */
    private volatile Resident[] residents = {};
    /**
     * Thread that currently runs the streams; null if none does. Another thread may read an outdated value, but never
     * itself.
     */
    private @Nullable Thread running;
    private volatile long functionSince;
    private volatile boolean stopped;
    /** Null if no other process maps this process's memory. */
    private volatile @Nullable SharedHeap heap;
    /** Agent through which waiting threads run the streams; null if they only wait. */
    private volatile @Nullable HelpedAgent helped;
    /** Wakes the thread that runs the streams. */
    private volatile Runnable wake = () -> {};

    public EmulatedDevice(int rank) {
        this(rank, Duration.ofSeconds(60), Duration.ofSeconds(60));
    }

    /**
     * @param roomDeadline  maximum time without a completed task in a stream while a thread waits for room in it
     * @param closeDeadline maximum time that the close of a stream waits for the stream's tasks
     */
    public EmulatedDevice(int rank, Duration roomDeadline, Duration closeDeadline) {
        this.name = "emulated device " + rank;
        this.rank = rank;
        this.roomDeadline = roomDeadline;
        this.closeDeadline = closeDeadline;
    }

    /** Allocates from memory that other processes map from now on, as long as that memory has room. */
    public void allocateFrom(SharedHeap mapped) {
        heap = mapped;
    }

    /** Returns the memory that is used for allocation; null if no other process maps it. */
    public @Nullable SharedHeap heap() {
        return heap;
    }

    int rank() {
        return rank;
    }

    Duration closeDeadline() {
        return closeDeadline;
    }

    Duration roomDeadline() {
        return roomDeadline;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public MemorySegment allocate(long bytes, Arena arena) {
        if (bytes < 0) {
            throw new IllegalArgumentException(name + ": cannot allocate " + bytes + " bytes; give 0 or more");
        }
        SharedHeap mapped = heap;
        MemorySegment part = mapped == null ? null : mapped.allocate(bytes, arena);
        return part != null ? part : arena.allocate(Math.max(bytes, 1), ALIGNMENT).asSlice(0, bytes);
    }

    @Override
    @SuppressWarnings("restricted") // the caller is responsible for the address
    public MemorySegment view(long address, long bytes) {
        if (bytes < 0 || address == 0 && bytes > 0) {
            throw new IllegalArgumentException(
                    name + ": there are no " + bytes + " bytes at address 0x" + Long.toHexString(address));
        }
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    @Override
    public boolean reaches(MemorySegment host, DataType type) {
        return host.isNative() && host.address() % type.bytes() == 0;
    }

    @Override
    public StagingMemory staging() {
        return staging;
    }

    @Override
    public EmulatedStream newStream() {
        if (stopped) {
            throw new MillraceException(name + ": the communicator is closed");
        }
        EmulatedStream stream = new EmulatedStream(this, name + ", stream " + streamCount.getAndIncrement());
        synchronized (this) {
            streams = with(streams, stream);
        }
        return stream;
    }

    @Override
    public EmulatedEvent newEvent() {
        return new EmulatedEvent(this);
    }

    /** Sets the agent that runs this device and that waiting threads help. Called before any thread waits. */
    public void runBy(HelpedAgent agent) {
        helped = agent;
    }

    /** Sets the action that wakes the thread that runs the streams. Called before a stream gets its first task. */
    public void wakeBy(Runnable wake) {
        this.wake = wake;
    }

    /**
     * Wakes the thread that runs the streams, because a stream has a new task or a kernel must leave. Callable from any
     * thread.
     */
    public void wake() {
        wake.run();
    }

    /**
     * Waits for a condition that the streams bring about. Returns false if it does not become true within the time, or
     * if the thread is interrupted.
     *
     * @param done the condition; evaluated repeatedly where this thread runs the streams meanwhile, otherwise when the
     *             thread is unparked, or after a while; the pass that makes it true must unpark the thread
     */
    boolean await(BooleanSupplier done, long nanos) {
        HelpedAgent agent = helped;
        if (agent != null) {
            return agent.await(done, nanos);
        }
        long start = System.nanoTime();
        IdleStrategy idle = IdleProfile.COMPLETION.newStrategy();
        try {
            while (!done.getAsBoolean()) {
                if (System.nanoTime() - start >= nanos || Thread.currentThread().isInterrupted()) {
                    return false;
                }
                idle.idle(0);
            }
            return true;
        } finally {
            idle.pause();
        }
    }

    /**
     * Called when a stream reaches a function of the program. Returns whether this thread may call it. If not, asks the
     * agent's own thread to do so.
     */
    boolean mayCallFunctions() {
        HelpedAgent agent = helped;
        if (agent == null || agent.isOwnThread()) {
            return true;
        }
        agent.needOwnThread();
        return false;
    }

    @Override
    public void copyToDevice(MemorySegment host, MemorySegment device, DeviceStream stream) {
        copy(host, device, stream);
    }

    @Override
    public void copyToHost(MemorySegment device, MemorySegment host, DeviceStream stream) {
        copy(device, host, stream);
    }

    /** Copies. Host memory and device memory are the same here. */
    private void copy(MemorySegment source, MemorySegment destination, DeviceStream stream) {
        CopiedSegments.check(source, destination);
        EmulatedStream queue = own(stream);
        if (!queue.captures(target -> copy(source, destination, target))) {
            queue.tasks().awaitRoom();
            queue.enqueue(new PiecewiseCopy(source, destination));
        }
    }

    /** Starts a kernel after all tasks that the stream already holds. */
    public void launch(EmulatedKernel kernel, DeviceStream stream) {
        own(stream).enqueue(kernel);
    }

    /**
     * Lets the calling thread run the streams for a while if it is so far ahead of them that this does not delay it.
     * More tasks would only wait, and the thread that usually runs the streams needs the same core. Uses no lock.
     */
    public void catchUp(DeviceStream stream) {
        HelpedAgent agent = helped;
        if (agent != null && stream instanceof EmulatedStream hostStream && hostStream.tasks().isFarBehind()) {
            agent.help(hostStream.tasks().catchesUp());
        }
    }

    /**
     * Refuses a stream that a kernel cannot be started on, before anything is done for the kernel.
     *
     * @throws IllegalArgumentException if it is not an open stream of this device
     * @throws MillraceException        if the caller is a function that a stream calls
     */
    public void check(DeviceStream stream) {
        checkCaller();
        if (stream == null) {
            throw new NullPointerException(name + ": the stream is null");
        }
        own(stream);
    }

    /**
     * Refuses a caller that is a function called by a stream. If it waited on the device's own thread, it would wait
     * forever.
     */
    public void checkCaller() {
        if (isRunByThisThread()) {
            throw new MillraceException(name
                    + ": operations cannot be enqueued by a function that a stream calls, because the device waits "
                    + "for it: " + "enqueue them from a thread of the program");
        }
    }

    /**
     * Returns whether the streams are captured.
     *
     * @throws MillraceException if only some of them are captured, or not all by the same capture: an operation on all
     *                           of them would be neither part of one plan nor executed at once
     */
    public boolean isCapturing(List<DeviceStream> all) {
        // A loop by index, because each operation calls this method and it must not allocate.
        StreamCapture first = own(all.getFirst()).capture();
        for (int i = 1; i < all.size(); i++) {
            if (own(all.get(i)).capture() != first) {
                throw new MillraceException(all.getFirst() + " and " + all.get(i)
                        + " are used by one group, and must be captured together, or not at all");
            }
        }
        return first != null;
    }

    /**
     * Returns whether the calling thread runs the streams. A function that a stream calls must not wait for the stream.
     */
    boolean isRunByThisThread() {
        return running == Thread.currentThread();
    }

    /**
     * Waits while a stream is full, before anything is done for the next operation. The caller must not hold a lock
     * that a stream's tasks need.
     *
     * @throws MillraceException if the stream completes nothing for a minute, or the thread is interrupted
     */
    public void awaitRoom(DeviceStream stream) {
        own(stream).tasks().awaitRoom();
    }

    /** Starts a kernel after another kernel, of any stream, has left the device. */
    void launchAfter(EmulatedKernel before, EmulatedKernel kernel, DeviceStream stream) {
        EmulatedStream queue = own(stream);
        queue.enqueue(new Work(before::done)); // this stream does not depend on the success of that kernel
        queue.enqueue(kernel);
    }

    synchronized void add(Resident resident) {
        residents = with(residents, resident);
    }

    synchronized void remove(Resident resident) {
        residents = without(residents, resident);
    }

    /** Returns the communicator at an address. Kernels name their communicator by address. */
    Resident resident(long address) {
        for (Resident resident : residents) {
            if (resident.communicator().address() == address) {
                return resident;
            }
        }
        throw new MillraceException(
                name + ": a kernel's work is damaged: there is no communicator at 0x" + Long.toHexString(address));
    }

    private static <T> T[] with(T[] all, T one) {
        T[] more = Arrays.copyOf(all, all.length + 1);
        more[all.length] = one;
        return more;
    }

    private static <T> T[] without(T[] all, T one) {
        return Arrays.stream(all).filter(each -> each != one).toArray(count -> Arrays.copyOf(all, count));
    }

    private EmulatedStream own(DeviceStream stream) {
        if (stream instanceof EmulatedStream hostStream && isRegistered(hostStream)) {
            return hostStream;
        }
        throw new IllegalArgumentException(
                "stream " + stream + " is not an open stream of " + name + ": make it with this device's newStream()");
    }

    boolean isRegistered(EmulatedStream stream) {
        for (EmulatedStream each : streams) {
            if (each == stream) {
                return true;
            }
        }
        return false;
    }

    synchronized void unregister(EmulatedStream stream) {
        streams = without(streams, stream);
    }

    @Override
    public int doWork() {
        running = Thread.currentThread();
        int work = 0;
        for (EmulatedStream stream : streams) {
            work += stream.tasks().progress();
        }
        running = null;
        wakePeers(work);
        return work;
    }

    /** Returns whether the streams hold no task. Callable from any thread. */
    public boolean isIdle() {
        for (EmulatedStream stream : streams) {
            if (!stream.tasks().isIdle()) {
                return false;
            }
        }
        return true;
    }

    private void wakePeers(int work) {
        if (work > 0) {
            SharedHeap mapped = heap;
            if (mapped != null) {
                mapped.doorbell().wakePeers();
            }
        }
    }

    /** Calls a function of the program, on the device's own thread. */
    void callFunction(Runnable function) {
        functionSince = System.nanoTime();
        try {
            function.run();
        } finally {
            functionSince = 0;
        }
    }

    /**
     * Returns the start time of the program's function that is running, as {@link System#nanoTime}; 0 if none is
     * running. Callable from any thread.
     */
    public long functionSince() {
        return functionSince;
    }

    /**
     * Runs the tasks of the streams that need not wait. Makes all other tasks fail, including later ones. No thread
     * would run them, and a thread that waited for them would never return.
     */
    @Override
    public void onClose() {
        running = Thread.currentThread();
        finish();
        running = null;
        stopped = true;
        for (EmulatedStream stream : streams) {
            stream.tasks().skipAll();
        }
    }

    /** Runs the tasks that the streams hold now and no later ones, because a function may enqueue itself repeatedly. */
    private void finish() {
        EmulatedStream[] now = streams;
        long[] targets = Arrays.stream(now).mapToLong(each -> each.tasks().enqueued()).toArray();
        int work;
        do {
            work = 0;
            for (int i = 0; i < now.length; i++) {
                work += now[i].tasks().completed() < targets[i] ? now[i].tasks().progress() : 0;
            }
            wakePeers(work);
        } while (work > 0);
    }

    /** Returns whether the device is closed and no thread will run the streams again. */
    boolean stopped() {
        return stopped;
    }

    @Override
    public void onFailure(Throwable failure) {
        for (EmulatedStream stream : streams) {
            stream.tasks().fail(failure);
        }
    }

    /** A copy of one piece in each pass, so that proxies and other streams on the same thread advance meanwhile. */
    static final class PiecewiseCopy implements StreamTask {

        private static final long PIECE_BYTES = 1 << 20;

        private final MemorySegment source;
        private final MemorySegment destination;
        private final long pieceBytes;
        private long copied;

        PiecewiseCopy(MemorySegment source, MemorySegment destination) {
            this.source = source;
            this.destination = destination;
            // With an overlap, copying one piece could overwrite bytes that a later piece reads.
            boolean apart = source.asOverlappingSlice(destination).isEmpty();
            pieceBytes = apart ? PIECE_BYTES : source.byteSize();
        }

        @Override
        public int progress() {
            long bytes = Math.min(pieceBytes, source.byteSize() - copied);
            MemorySegment.copy(source, copied, destination, copied, bytes);
            copied += bytes;
            return 1;
        }

        @Override
        public void skip(Throwable reason) {
            copied = source.byteSize();
        }

        @Override
        public boolean done() {
            return copied == source.byteSize();
        }
    }

    /**
     * Judges kernels without progress. Such a kernel may wait for a rank that has not reached the operation yet, or it
     * may wait forever. Called by the device's thread. Does not block.
     */
    public interface KernelWatch {

        /**
         * Returns the time without progress, in nanoseconds, after which a kernel is judged. It is then judged
         * repeatedly.
         */
        long stallNanos();

        /**
         * Judges whether a kernel without progress waits for an event that may still occur.
         *
         * @param kernel     description of its work, as passed to {@link WorkLauncher#start}
         * @param stillSince time of the last progress, as {@link System#nanoTime()}
         * @param waitingFor description of the awaited connection and counters, for messages
         * @return reason to abandon the kernel; null to keep it waiting
         */
        @Nullable
        MillraceException judge(Object kernel, long stillSince, Supplier<String> waitingFor);

        /** {@return whether the end times of kernels are used} */
        default boolean timesKernels() {
            return false;
        }

        /** Called when a kernel without progress moves again. */
        default void moved() {}
    }
}
