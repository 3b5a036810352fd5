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
import org.millrace.net.shm.SharedHeap;

/**
 * The emulated device: its memory is the host's, and its streams are run by the thread that runs this agent, one at a
 * time. "The device's thread" is the one that does so just now.
 */
public final class EmulatedDevice implements Device, Agent {

    private static final long ALIGNMENT = 64;

    private final String name;
    private final int rank;
    private final Duration roomDeadline;
    private final Duration closeDeadline;
    private final AtomicInteger streamCount = new AtomicInteger();
    private final StagingMemory staging = new StagingMemory((bytes, arena) -> arena.allocate(bytes, ALIGNMENT));
    /** Those that are open. Copied when one comes or goes: any thread does that, and the device's thread reads it. */
    private volatile EmulatedStream[] streams = {};
    /** The communicators whose kernels it runs; likewise. */
    private volatile Resident[] residents = {};
    /** The thread that runs streams just now. Others may see an old one, which is none of them. */
    private @Nullable Thread running;
    private volatile long functionSince;
    private volatile boolean stopped;
    /** Null where no other process maps this one's memory. */
    private volatile @Nullable SharedHeap heap;
    /** Where threads that wait run the streams meanwhile; null where they only wait. */
    private volatile @Nullable HelpedAgent helped;

    public EmulatedDevice(int rank) {
        this(rank, Duration.ofSeconds(60), Duration.ofSeconds(60));
    }

    /**
     * @param roomDeadline  how long a stream may complete nothing while a thread waits for room in it
     * @param closeDeadline how long a stream that is closed waits for what it holds
     */
    public EmulatedDevice(int rank, Duration roomDeadline, Duration closeDeadline) {
        this.name = "emulated device " + rank;
        this.rank = rank;
        this.roomDeadline = roomDeadline;
        this.closeDeadline = closeDeadline;
    }

    /** Allocates from memory that other processes map from now on, as long as that has room. */
    public void allocateFrom(SharedHeap mapped) {
        heap = mapped;
    }

    /** What is allocated from; null if no other process maps it. */
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
        SharedHeap mapped = heap;
        MemorySegment part = mapped == null ? null : mapped.allocate(bytes, arena);
        return part != null ? part : arena.allocate(Math.max(bytes, 1), ALIGNMENT).asSlice(0, bytes);
    }

    @Override
    @SuppressWarnings("restricted") // the caller answers for the address
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

    /** Says that this device is run by an agent that threads help which wait for it. Before anybody does. */
    public void runBy(HelpedAgent agent) {
        helped = agent;
    }

    /**
     * Waits until something is done that the streams bring about; false if it is not within the time, or the thread is
     * interrupted.
     *
     * @param done asked again and again where this thread runs the streams meanwhile; otherwise when it is unparked, or
     *             after a while
     */
    boolean await(BooleanSupplier done, long nanos) {
        HelpedAgent agent = helped;
        if (agent != null) {
            return agent.await(done, nanos);
        }
        long start = System.nanoTime();
        IdleStrategy idle = IdleProfile.COMPLETION.newStrategy();
        while (!done.getAsBoolean()) {
            if (System.nanoTime() - start >= nanos || Thread.currentThread().isInterrupted()) {
                return false;
            }
            idle.idle(0);
        }
        return true;
    }

    /** A stream has come to a function of the program: whether this thread may call it, or else leaves it to that. */
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

    /** Host and device memory are one here. */
    private void copy(MemorySegment source, MemorySegment destination, DeviceStream stream) {
        if (source.byteSize() != destination.byteSize()) {
            throw new IllegalArgumentException("copy of " + source.byteSize() + " bytes into " + destination.byteSize()
                    + ": source and destination must be of one size");
        }
        EmulatedStream queue = own(stream);
        if (!queue.captures(target -> copy(source, destination, target))) {
            queue.tasks().awaitRoom();
            queue.enqueue(new PiecewiseCopy(source, destination));
        }
    }

    /** Starts a kernel behind what the stream already holds. */
    public void launch(EmulatedKernel kernel, DeviceStream stream) {
        own(stream).enqueue(kernel);
    }

    /**
     * Has the calling thread run the streams for a while if it is so far ahead of them that this does not keep it from
     * anything: what is enqueued would only wait, and the thread that else runs them for the same core. Without a lock.
     */
    public void catchUp(DeviceStream stream) {
        HelpedAgent agent = helped;
        if (agent != null && stream instanceof EmulatedStream hostStream && hostStream.tasks().isFarBehind()) {
            agent.help(hostStream.tasks().catchesUp());
        }
    }

    /**
     * Refuses a stream that a kernel cannot be started on, before anything is done for it.
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

    /** Refuses a function that a stream calls: one that waits on the device's own thread waits for ever. */
    public void checkCaller() {
        if (isRunByThisThread()) {
            throw new MillraceException(name
                    + ": operations cannot be enqueued by a function that a stream calls, because the device waits "
                    + "for it: " + "enqueue them from a thread of the program");
        }
    }

    /**
     * Whether streams are captured.
     *
     * @throws MillraceException if some are and others are not, or not by one capture: what is enqueued for all of them
     *                           would be neither a plan's nor not
     */
    public boolean isCapturing(List<DeviceStream> all) {
        // by index: each operation asks this, and nothing is to be allocated for it
        StreamCapture first = own(all.getFirst()).capture();
        for (int i = 1; i < all.size(); i++) {
            if (own(all.get(i)).capture() != first) {
                throw new MillraceException(all.getFirst() + " and " + all.get(i)
                        + " are used by one group, and must be captured together, or not at all");
            }
        }
        return first != null;
    }

    /** A function that a stream calls must not wait for the stream. */
    boolean isRunByThisThread() {
        return running == Thread.currentThread();
    }

    /**
     * Waits while a stream holds as much as it may, before anything is done for what comes next. Not to be called with
     * a lock that a stream's tasks need.
     *
     * @throws MillraceException if the stream completes nothing for a minute, or the thread is interrupted
     */
    public void awaitRoom(DeviceStream stream) {
        own(stream).tasks().awaitRoom();
    }

    /** Starts a kernel when another, of whatever stream, has left the device. */
    void launchBehind(EmulatedKernel before, EmulatedKernel kernel, DeviceStream stream) {
        EmulatedStream queue = own(stream);
        queue.enqueue(new Work(before::done)); // whether it was complete is not this stream's matter
        queue.enqueue(kernel);
    }

    synchronized void add(Resident resident) {
        residents = with(residents, resident);
    }

    synchronized void remove(Resident resident) {
        residents = without(residents, resident);
    }

    /** The communicator at an address, by which kernels name theirs. */
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

    /** When the function of the program was called that has not returned yet; 0 if there is none. Any thread. */
    public long functionSince() {
        return functionSince;
    }

    /**
     * Runs what the streams hold as far as it waits for nothing, and makes the rest fail, as well as all that they are
     * given later: there is no thread any more that would run it, and a thread that waits for it would wait in vain.
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

    /** Runs what the streams hold now, and no more: a function may enqueue itself again and again. */
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

    /** Whether no thread runs the streams any more, nor ever will. */
    boolean stopped() {
        return stopped;
    }

    @Override
    public void onFailure(Throwable failure) {
        for (EmulatedStream stream : streams) {
            stream.tasks().fail(failure);
        }
    }

    /** A piece in each pass, so that proxies and other streams that the same thread runs go on meanwhile. */
    static final class PiecewiseCopy implements StreamTask {

        private static final long PIECE_BYTES = 1 << 20;

        private final MemorySegment source;
        private final MemorySegment destination;
        private final long pieceBytes;
        private long copied;

        PiecewiseCopy(MemorySegment source, MemorySegment destination) {
            this.source = source;
            this.destination = destination;
            // one piece could write over what a later one reads
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
     * Judges kernels that stand still: one may wait for a rank that has not come to the operation yet, or for good.
     * Called by the device's thread, and does not wait.
     */
    public interface KernelWatch {

        /** How long a kernel stands still before it is judged, again and again. */
        long patienceNanos();

        /**
         * Whether a kernel that stands still waits for something that may still come.
         *
         * @param kernel     what it does, as {@link WorkLauncher#start} was told
         * @param stillSince when something moved last, as {@link System#nanoTime()} counts
         * @param waitingFor what it waits for, for messages
         * @return why it is given up; null while it is not
         */
        @Nullable
        MillraceException judge(Object kernel, long stillSince, Supplier<String> waitingFor);

        /** {@return whether anybody wants to know when a kernel ended} */
        default boolean timesKernels() {
            return false;
        }

        /** What stood still moves again. */
        default void moved() {}
    }
}
