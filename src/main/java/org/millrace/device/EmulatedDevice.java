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
import org.millrace.agent.Agent;
import org.millrace.agent.HelpedAgent;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.device.StreamTask.Work;
import org.millrace.net.shm.SharedHeap;
import org.millrace.operation.CopiedSegments;
import org.millrace.operation.Required;
import org.millrace.operation.StagingDevice;
import org.millrace.operation.StagingMemory;

/**
 * The emulated device. Its memory is host memory. The device is an agent: the thread that runs the agent runs the
 * device's streams. Several threads can run the agent in turn, but only one at a time. In this package, "the device's
 * thread" is the thread that currently runs the streams.
 */
public final class EmulatedDevice implements Device, StagingDevice, Agent {

    private static final long ALIGNMENT = 64;
    /**
     * Minimum size in bytes at which operations access memory on the Java heap in place. Smaller memory is copied to
     * staging memory, so that repeated operations can launch the same kernels again.
     */
    private static final long LEAST_HEAP_BYTES = 4 << 20;

    private final String name;
    private final int rank;
    private final Duration roomDeadline;
    private final Duration closeDeadline;
    private final AtomicInteger streamCount = new AtomicInteger();
    private final StagingMemory staging = new StagingMemory((bytes, arena) -> arena.allocate(bytes, ALIGNMENT));
    /**
     * Open streams. Each change replaces the array by a changed copy, because any thread may open or close a stream
     * while the device's thread reads the array.
     */
    private volatile EmulatedStream[] streams = {};
    /**
     * Communicators that have kernels on this device. Each change replaces the array by a changed copy, as for
     * {@link #streams}.
     */
    private volatile Resident[] residents = {};
    /**
     * Thread that currently runs the streams; null if no thread runs them. Each thread reads the field for a single
     * purpose: to find out whether it runs the streams itself. No ordering is needed, because a thread always sees its
     * own last store to the field.
     */
    private @Nullable Thread running;
    private volatile long functionSince;
    private volatile boolean stopped;
    /** Heap of this process that other processes map, for allocations; null if this process has no such heap. */
    private volatile @Nullable SharedHeap heap;
    /** Agent that lets a waiting thread run the streams; null if waiting threads do not run them. */
    private volatile @Nullable HelpedAgent helped;
    /** Action that wakes the thread that runs the streams. */
    private volatile Runnable wake = () -> {};

    public EmulatedDevice(int rank) {
        this(rank, Duration.ofSeconds(60), Duration.ofSeconds(60));
    }

    /**
     * @param rank          rank that uses the device, for names and messages
     * @param roomDeadline  maximum time that a thread waits for room in a stream while no task of the stream completes
     * @param closeDeadline maximum time that the close of a stream waits for the stream's tasks
     */
    public EmulatedDevice(int rank, Duration roomDeadline, Duration closeDeadline) {
        this.name = "emulated device " + rank;
        this.rank = rank;
        this.roomDeadline = roomDeadline;
        this.closeDeadline = closeDeadline;
    }

    /**
     * From now on, allocates memory from a heap that other processes map. Allocations that do not fit into the heap use
     * other memory.
     */
    public void allocateFrom(SharedHeap mapped) {
        heap = mapped;
    }

    /** Returns the heap of this process that other processes map; null if this process has no such heap. */
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
        Required.argument("allocate", "arena", arena);
        SharedHeap mapped = heap;
        MemorySegment part = mapped == null ? null : mapped.allocate(bytes, arena);
        return part != null ? part : arena.allocate(Math.max(bytes, 1), ALIGNMENT).asSlice(0, bytes);
    }

    @Override
    @SuppressWarnings("restricted") // safe if the caller passes a valid address
    public MemorySegment view(long address, long bytes) {
        if (bytes < 0 || address == 0 && bytes > 0) {
            throw new IllegalArgumentException(
                    name + ": there are no " + bytes + " bytes at address 0x" + Long.toHexString(address));
        }
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    @Override
    public boolean reaches(MemorySegment host, DataType type) {
        Required.argument("reaches", "type", type);
        return Required.argument("reaches", "memory", host).isNative() ? host.address() % type.bytes() == 0
                : host.byteSize() >= LEAST_HEAP_BYTES;
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

    /** Sets the agent of this device, so that waiting threads can run the streams. Called before any thread waits. */
    public void runBy(HelpedAgent agent) {
        helped = agent;
    }

    /** Sets the action that wakes the thread that runs the streams. Called before a stream receives its first task. */
    public void wakeBy(Runnable wake) {
        this.wake = wake;
    }

    /**
     * Wakes the thread that runs the streams. Called when a stream has a new task or when a kernel must leave the
     * device. Callable from any thread.
     */
    public void wake() {
        wake.run();
    }

    /**
     * Waits until tasks of the streams make a condition true. Returns false if the condition is not true within the
     * time limit, or if the thread is interrupted.
     *
     * @param done  condition. If the calling thread runs the streams while it waits, it evaluates the condition
     *              repeatedly. Otherwise the calling thread evaluates the condition after an unpark, or after a while.
     *              The task that makes the condition true must therefore unpark the calling thread.
     * @param nanos time limit in nanoseconds
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
     * Returns whether the calling thread may call a host function. Called when a stream reaches a host function. If the
     * result is false, the agent's own thread has been asked to call the function.
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

    /** Enqueues a copy. Both directions use this method, because the memory of the emulated device is host memory. */
    private void copy(MemorySegment source, MemorySegment destination, DeviceStream stream) {
        CopiedSegments.check(source, destination);
        EmulatedStream queue = own(stream);
        if (!queue.captures(target -> copy(source, destination, target))) {
            queue.tasks().awaitRoom();
            queue.enqueue(new PiecewiseCopy(source, destination));
        }
    }

    /** Starts a kernel after all tasks that the stream contains now. */
    public void launch(EmulatedKernel kernel, DeviceStream stream) {
        own(stream).enqueue(kernel);
    }

    /**
     * Lets the calling thread run the streams for a while if the stream contains many tasks. The program is not
     * delayed, because its further tasks would only wait in the stream. On a machine without a free core, the thread
     * that usually runs the streams needs the core of the calling thread. Uses no lock.
     */
    public void catchUp(DeviceStream stream) {
        HelpedAgent agent = helped;
        if (agent != null && stream instanceof EmulatedStream hostStream && hostStream.tasks().isFarBehind()) {
            agent.help(hostStream.tasks().catchesUp());
        }
    }

    /**
     * Checks that a kernel can be started on a stream. Called before anything else is done for the kernel.
     *
     * @throws IllegalArgumentException if the stream is not an open stream of this device
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
     * Throws if the caller is a host function. A host function runs on the thread that runs the streams. A host
     * function that waited for a stream would wait forever.
     */
    public void checkCaller() {
        if (isRunByThisThread()) {
            throw new MillraceException(name
                    + ": operations cannot be enqueued by a function that a stream calls, because the device waits "
                    + "for it: " + "enqueue them from a thread of the program");
        }
    }

    /**
     * Returns whether all the given streams are being captured.
     *
     * @throws MillraceException if only some of the streams are captured, or if they belong to different captures. An
     *                           operation on all these streams could then neither be recorded in one plan nor run
     *                           immediately.
     */
    public boolean isCapturing(List<DeviceStream> all) {
        // The loop uses an index and no iterator. Each operation calls this method, so it must not allocate.
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
     * Returns whether the calling thread runs the streams. The thread also runs them while it calls a host function,
     * which must therefore not wait for a stream.
     */
    boolean isRunByThisThread() {
        return running == Thread.currentThread();
    }

    /**
     * Waits while a stream is full. Called before anything else is done for the next operation. The caller must not
     * hold a lock that a task of a stream needs.
     *
     * @throws MillraceException if the stream completes no task within the room deadline of this device, or if the
     *                           thread is interrupted
     */
    public void awaitRoom(DeviceStream stream) {
        own(stream).tasks().awaitRoom();
    }

    /**
     * Starts a kernel on a stream after another kernel has left the device. The other kernel may belong to another
     * stream.
     */
    void launchAfter(EmulatedKernel before, EmulatedKernel kernel, DeviceStream stream) {
        EmulatedStream queue = own(stream);
        // This task waits until the other kernel has left the device. A failure of that kernel does not affect this
        // stream.
        queue.enqueue(new Work(before::done));
        queue.enqueue(kernel);
    }

    synchronized void add(Resident resident) {
        residents = with(residents, resident);
    }

    synchronized void remove(Resident resident) {
        residents = without(residents, resident);
    }

    /** Returns the communicator at an address. The work of a kernel contains the address of its communicator. */
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

    /** Returns whether all streams are empty. Callable from any thread. */
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

    /** Calls a host function. Called on the agent's own thread. */
    void callFunction(Runnable function) {
        functionSince = System.nanoTime();
        try {
            function.run();
        } finally {
            functionSince = 0;
            Thread.interrupted(); // with the interrupt status set, this thread could not park
        }
    }

    /**
     * Returns the time when the running host function was called, as a value of {@link System#nanoTime}; 0 if no host
     * function is running. Callable from any thread.
     */
    public long functionSince() {
        return functionSince;
    }

    /**
     * Runs those tasks of the streams that need not wait. All other tasks fail, because no thread will run them later.
     * Tasks that are added after this call fail, too. Without the failure, a thread that waits for such a task would
     * wait forever.
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

    /**
     * Runs the tasks that the streams contain now. Does not run tasks that are enqueued during this call. If this call
     * ran them, a function that enqueues itself again would keep this call running forever.
     */
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

    /**
     * A copy task. Each pass copies one piece, so that proxies and other streams on the same thread can advance between
     * two pieces.
     */
    static final class PiecewiseCopy implements StreamTask {

        private static final long PIECE_BYTES = 1 << 20;

        private final MemorySegment source;
        private final MemorySegment destination;
        private final long pieceBytes;
        private long copied;

        PiecewiseCopy(MemorySegment source, MemorySegment destination) {
            this.source = source;
            this.destination = destination;
            // If source and destination overlap, the copy of one piece could overwrite bytes that a later piece must
            // read.
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
     * Decides whether a kernel without progress is aborted. Such a kernel may wait for a rank that has not reached the
     * operation yet, or it may wait forever. The device's thread calls the methods, so they must not block.
     */
    public interface KernelWatch {

        /**
         * Returns the time without progress after which {@link #judge} is called for a kernel, in nanoseconds. After
         * that time, each pass calls {@link #judge} again.
         */
        long stallNanos();

        /**
         * Decides whether a kernel without progress may continue to wait.
         *
         * @param kernel     description of the kernel's work, as passed to {@link WorkLauncher#start}
         * @param stillSince time of the last progress, as {@link System#nanoTime()}
         * @param waitingFor description of the awaited connection and counters, for messages
         * @return reason to abandon the kernel; null to keep it waiting
         */
        @Nullable
        MillraceException judge(Object kernel, long stillSince, Supplier<String> waitingFor);

        /** Returns whether the device must record the end times of kernels for this watch. */
        default boolean timesKernels() {
            return false;
        }

        /** Called when a kernel that was judged makes progress again. */
        default void moved() {}
    }
}
