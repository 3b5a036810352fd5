package org.millrace.gpu;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.Device;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.MillraceException;
import org.millrace.OperationInterruptedException;
import org.millrace.agent.Waiting;
import org.millrace.bootstrap.GroupFailure;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaEvent;
import org.millrace.cuda.CudaException;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.DeviceMemory;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.PinnedMemory;
import org.millrace.operation.Completions;
import org.millrace.operation.CopiedSegments;
import org.millrace.operation.StagingDevice;
import org.millrace.operation.StagingMemory;

/**
 * The GPU of a rank. Programs can slice the GPU's memory and pass it to operations. If a Java program reads or writes
 * the memory, an exception is thrown. See {@link DeviceSegments}.
 */
final class GpuDevice implements Device, StagingDevice {

    private final CudaDevice cuda;
    private final String name;
    private final GroupFailure failure;
    /** Failures of the open communicators that were split from the rank's communicator and also use this device. */
    private final Set<GroupFailure> others = ConcurrentHashMap.newKeySet();
    private final Set<GpuStream> streams = ConcurrentHashMap.newKeySet();
    /** Memory that was allocated by this object and is not freed: start address to size in bytes. */
    private final ConcurrentSkipListMap<Long, Long> taken = new ConcurrentSkipListMap<>();
    private final StagingMemory staging = new StagingMemory(this::allocate);
    private final StagedCopies copies;
    private final AtomicInteger users = new AtomicInteger(1);

    GpuDevice(CudaDevice cuda, GroupFailure failure) {
        this.cuda = cuda;
        this.failure = failure;
        copies = new StagedCopies(cuda);
        name = cuda.name() + " (" + cuda + " at " + cuda.pciBusId() + ")";
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    // The suppressed warning is about reinterpret(), which adds an action that runs when the arena is closed.
    @SuppressWarnings("restricted")
    public MemorySegment allocate(long bytes, Arena arena) {
        // CUDA returns no address for an allocation of 0 bytes.
        DeviceMemory memory = cuda.allocate(bytes == 0 ? 1 : bytes);
        taken.put(memory.address(), memory.byteSize());
        Runnable free = () -> {
            taken.remove(memory.address());
            memory.close();
        };
        try {
            MemorySegment.NULL.reinterpret(0, arena, ended -> free.run());
        } catch (RuntimeException closedArena) {
            free.run();
            throw closedArena;
        }
        return memory.slice(0, bytes);
    }

    @Override
    public MemorySegment view(long address, long bytes) {
        MemorySegment memory = DeviceSegments.of(address, bytes);
        CudaRuntime.PointerAttributes known = CudaRuntime.PointerAttributes.of(cuda.runtime(), memory);
        if (known.kind() == CudaRuntime.PointerAttributes.Kind.UNREGISTERED || known.onDevice() == 0) {
            throw new IllegalArgumentException(name + ": address 0x" + Long.toHexString(address)
                    + " is not memory that this GPU reaches: CUDA knows it as " + known.kind());
        }
        return memory;
    }

    @Override
    public GpuStream newStream() {
        if (users.get() == 0) {
            throw new MillraceException(name + ": the communicator is closed");
        }
        GpuStream stream = new GpuStream(this, cuda.newStream());
        streams.add(stream);
        return stream;
    }

    @Override
    public CudaEvent newEvent() {
        return CudaEvent.timing(cuda);
    }

    @Override
    public void copyToDevice(MemorySegment host, MemorySegment device, DeviceStream stream) {
        CudaStream on = own(stream).cuda();
        if (copies.isFor(host, on)) {
            copies.toDevice(host, device, on);
        } else {
            on.copy(device, host);
        }
    }

    @Override
    public void copyToHost(MemorySegment device, MemorySegment host, DeviceStream stream) {
        CudaStream on = own(stream).cuda();
        if (copies.isFor(host, on)) {
            copies.toHost(device, host, on);
        } else {
            on.copy(host, device);
        }
    }

    @Override
    public StagingMemory staging() {
        copies.prepare();
        return staging;
    }

    GpuStream own(DeviceStream stream) {
        if (stream instanceof GpuStream gpuStream && streams.contains(gpuStream)) {
            return gpuStream;
        }
        throw new IllegalArgumentException(
                "stream " + stream + " is not an open stream of " + name + ": make it with this device's newStream()");
    }

    /** Adds a communicator that was split from the rank's communicator and will also use this device. */
    void share(GroupFailure other) {
        users.incrementAndGet();
        others.add(other);
    }

    /**
     * Removes a closed communicator. Streams then no longer report the communicator's failure. They need not report
     * this failure, because the thread that closed the communicator knows the results of the communicator's operations.
     */
    void unshare(GroupFailure other) {
        others.remove(other);
        if (users.decrementAndGet() == 0) {
            staging.close();
            copies.close();
        }
    }

    /**
     * Throws the failure of any communicator that uses the device. A stream's kernels may belong to any of these
     * communicators, so the failure of one communicator may have ended any kernel early.
     */
    void throwIfFailed() {
        failure.throwIfFailed();
        others.forEach(GroupFailure::throwIfFailed);
    }

    void fail(Throwable broken) {
        failure.fail(broken);
        others.forEach(other -> other.fail(broken));
    }

    void forget(GpuStream stream) {
        streams.remove(stream);
    }

    /** Waits until all streams are idle. Returns false if the deadline passes first. */
    boolean awaitIdle(Duration deadline) {
        long end = System.nanoTime() + deadline.toNanos();
        boolean idle = true;
        for (GpuStream stream : streams) {
            idle &= stream.awaitIdle(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
        }
        return idle;
    }

    /**
     * Throws if a kernel that accesses the segment would cause a fault. After such a fault this process could no longer
     * use the GPU.
     *
     * @param what name of the segment in messages
     */
    void checkReach(String what, MemorySegment segment, long bytes) {
        if (bytes == 0 || isTaken(segment.address(), bytes)) {
            return;
        }
        if (!DeviceSegments.isDevice(segment)) {
            throw new IllegalArgumentException(what + ": the segment is host memory;"
                    + " take device memory from Device.allocate, or give the device's view of pinned memory");
        }
        // Other code allocated the memory, for instance NCCL or another process. CUDA can report the memory's
        // attributes.
        CudaRuntime.PointerAttributes known = CudaRuntime.PointerAttributes.of(cuda.runtime(), segment);
        if (known.kind() == CudaRuntime.PointerAttributes.Kind.UNREGISTERED) {
            throw new IllegalArgumentException(
                    what + ": the segment's arena is closed; keep it open until the operation has completed");
        }
    }

    private boolean isTaken(long address, long bytes) {
        Map.Entry<Long, Long> below = taken.floorEntry(address);
        return below != null && address + bytes <= below.getKey() + below.getValue();
    }

    /**
     * A CUDA stream that reports the failure of any communicator that uses the device. Without this report, a thread
     * would wait forever for a kernel that waits for a lost rank.
     */
    static final class GpuStream implements DeviceStream {

        private final GpuDevice device;
        private final CudaStream cuda;

        GpuStream(GpuDevice device, CudaStream cuda) {
            this.device = device;
            this.cuda = cuda;
        }

        CudaStream cuda() {
            return cuda;
        }

        @Override
        public boolean query() {
            // The stream is queried first. The kernels of an aborted communicator end as if they had completed, and the
            // later check of the failures then detects the abort.
            boolean done = isIdle();
            device.throwIfFailed();
            return done;
        }

        private boolean isIdle() {
            try {
                return cuda.query();
            } catch (CudaException broken) {
                device.fail(broken);
                throw broken;
            }
        }

        @Override
        public CompletionStage<Void> completion() {
            CudaEvent mark = CudaEvent.marker(cuda.device());
            cuda.record(mark);
            return Completions.of(() -> {
                boolean done = mark.query();
                // As in query(), failures are checked after the event is queried.
                device.throwIfFailed();
                return done;
            }).whenComplete((_, _) -> mark.close());
        }

        @Override
        public void synchronize(Duration deadline) {
            Waiting.requireNotNegative("synchronize", deadline);
            boolean isOver = Waiting.until(() -> query() || Thread.currentThread().isInterrupted(), deadline);
            if (Thread.currentThread().isInterrupted() && !query()) {
                throw new OperationInterruptedException("the thread was interrupted while it waited for " + this,
                        CommunicatorException.NO_RANK, null, this::completion);
            }
            if (!isOver) {
                throw new DeadlineException("what " + this + " holds had not completed after " + deadline.toMillis()
                        + " ms: see whether every rank has enqueued the same operations, and abort the communicator to"
                        + " end them", CommunicatorException.NO_RANK, CommunicatorException.NO_RANK, null, null);
            }
        }

        @Override
        public void record(Event event) {
            cuda.record(event);
        }

        @Override
        public void waitFor(Event event) {
            cuda.waitFor(event);
        }

        @Override
        public void call(Runnable function) {
            cuda.call(function);
        }

        /** Waits until the stream is idle, without reporting a failure. Returns false if the deadline passes first. */
        boolean awaitIdle(Duration deadline) {
            try {
                return Waiting.until(cuda::query, deadline);
            } catch (MillraceException | IllegalStateException brokenOrClosed) {
                // The stream has failed or is closed, so nothing more can run on it.
                return true;
            }
        }

        @Override
        public void close() {
            device.forget(this);
            cuda.close();
        }

        @Override
        public String toString() {
            return cuda.toString();
        }
    }

    /**
     * Copies between a GPU and host memory that the GPU cannot access directly: the Java heap, and native memory that
     * is not pinned. Without this class, CUDA would read such memory immediately, before earlier work of the stream. To
     * write such memory, CUDA would block the calling thread. This class copies through small pinned buffers, in the
     * order of the stream's work.
     */
    static final class StagedCopies implements AutoCloseable {

        /**
         * Size of a pinned buffer in bytes. Pinned memory is expensive, so the buffer is small. A long copy fills the
         * buffer several times. While the host fills or empties the buffer, the GPU does not copy. Each filling also
         * costs a host call of 10 µs.
         */
        private static final long PIECE_BYTES = 4 << 20;

        private final CudaDevice device;
        private final StagingMemory pinned;
        private boolean prepared;

        StagedCopies(CudaDevice device) {
            this.device = device;
            this.pinned = new StagingMemory((bytes, arena) -> PinnedMemory.allocate(device, bytes, arena).host());
        }

        /**
         * Allocates the pinned memory for one copy in each direction, before the program enqueues operations. A later
         * allocation might wait for kernels, and these kernels might need operations that the program has not enqueued
         * yet. Kernels and program would then wait forever.
         */
        synchronized void prepare() {
            if (!prepared) {
                prepared = true;
                try (StagingMemory.Lease _ = pinned.take(PIECE_BYTES);
                        StagingMemory.Lease _ = pinned.take(PIECE_BYTES)) {
                    // The return closes both leases, but the pinned buffers remain allocated for the copies.
                    return;
                }
            }
        }

        /**
         * Returns whether a copy of host memory must be staged in a pinned buffer. Returns false while the stream is
         * being captured, because CUDA itself makes the copies that a graph contains.
         */
        boolean isFor(MemorySegment host, CudaStream stream) {
            if (host.byteSize() == 0 || stream.isCapturing()) {
                return false;
            }
            return !host.isNative() || CudaRuntime.PointerAttributes.of(device.runtime(), host)
                    .kind() == CudaRuntime.PointerAttributes.Kind.UNREGISTERED;
        }

        void toDevice(MemorySegment host, MemorySegment target, CudaStream stream) {
            copy(host, target, stream, true);
        }

        void toHost(MemorySegment source, MemorySegment host, CudaStream stream) {
            copy(host, source, stream, false);
        }

        private void copy(MemorySegment host, MemorySegment onDevice, CudaStream stream, boolean toDevice) {
            if (host.byteSize() != onDevice.byteSize()) {
                throw new IllegalArgumentException("copy between " + host.byteSize() + " bytes of the host and "
                        + onDevice.byteSize() + " of the device: both must be of one size");
            }
            CopiedSegments.check("host's segment", host, !toDevice);
            // The device's segment is not checked: the driver copies, and no Java thread accesses this segment.
            prepare();
            StagingMemory.Lease lease = pinned.take(PIECE_BYTES);
            for (long at = 0; at < host.byteSize(); at += PIECE_BYTES) {
                long bytes = Math.min(PIECE_BYTES, host.byteSize() - at);
                MemorySegment piece = lease.memory().asSlice(0, bytes);
                MemorySegment there = host.asSlice(at, bytes);
                if (toDevice) {
                    stream.call(() -> piece.copyFrom(there));
                    stream.copy(onDevice.asSlice(at, bytes), piece);
                } else {
                    stream.copy(piece, onDevice.asSlice(at, bytes));
                    stream.call(() -> there.copyFrom(piece));
                }
            }
            // The stream calls this function after the last copy.
            stream.call(lease::close);
        }

        @Override
        public void close() {
            pinned.close();
        }
    }
}
