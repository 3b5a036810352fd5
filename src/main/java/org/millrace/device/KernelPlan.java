package org.millrace.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.abi.kernel.WorkBatch;

/**
 * The work of one kernel: its arguments, the batches in them, and the work items. The arguments state where the work
 * items are stored. {@link PlanBuilder} creates a plan, and the work does not change afterwards.
 */
public final class KernelPlan implements AutoCloseable {

    private static final int NO_MASK = -1;

    private final String owner;
    private final Object first;
    private final int operations;
    private final MemorySegment arguments;
    private final int batches;
    /** Copy of the work items; null if the arguments contain the items. */
    private final @Nullable MemorySegment items;
    private final KernelMemory memory;
    private final KernelArguments.WorkStorage storage;
    private final @Nullable KernelArguments placed;
    /** Arena of the work items if the plan runs more than once; null for other plans. */
    private final @Nullable Arena own;
    private volatile boolean closed;
    /** Object that the launcher keeps between two runs of the plan. Guarded by the launcher's lock. */
    private @Nullable Object attachment;

    /** @param items segment that begins with {@code itemBytes} bytes of work items; these bytes are copied */
    KernelPlan(String owner, Object first, int operations, MemorySegment arguments, int batches, MemorySegment items,
            int itemBytes, KernelMemory memory) {
        this.owner = owner;
        this.first = first;
        this.operations = operations;
        this.arguments = arguments;
        this.batches = batches;
        this.memory = memory;
        this.storage = KernelArguments.of(arguments).storage();
        this.own = storage == KernelArguments.WorkStorage.PERSISTENT ? Arena.ofShared() : null;
        this.items = switch (storage) {
            case ARGUMENTS -> null;
            case PERSISTENT -> copy(items, own.allocate(itemBytes, WorkFifo.UNIT));
            case FIFO -> copy(items, MemorySegment.ofArray(new long[itemBytes / Long.BYTES]));
        };
        this.placed = switch (storage) {
            case ARGUMENTS -> placeBehindBatches(items, itemBytes);
            case PERSISTENT -> place(arguments, this.items.address(), NO_MASK, 0);
            case FIFO -> null;
        };
    }

    private static MemorySegment copy(MemorySegment from, MemorySegment to) {
        MemorySegment.copy(from, 0, to, 0, to.byteSize());
        return to;
    }

    private KernelArguments placeBehindBatches(MemorySegment moved, int bytes) {
        int head = KernelArguments.BYTES + batches * WorkBatch.BYTES;
        MemorySegment.copy(moved, 0, arguments, head, bytes);
        return place(arguments, 0, NO_MASK, head);
    }

    private KernelArguments place(MemorySegment target, long address, int mask, int first) {
        KernelArguments result = KernelArguments.of(target);
        result.place(address, mask);
        for (int batch = 0; batch < batches; batch++) {
            WorkBatch.move(target, KernelArguments.batchOffset(batch), first);
        }
        return result;
    }

    /**
     * Returns the number of bytes that each run of the plan needs in the FIFO; 0 if the work items are stored
     * elsewhere.
     */
    public int fifoBytes() {
        return storage == KernelArguments.WorkStorage.FIFO ? (int) items.byteSize() : 0;
    }

    /**
     * Stores the work items where the kernel will read them. If the plan uses the FIFO, the FIFO must have room.
     * Returns the arguments for the launch, which contain the location of the items.
     *
     * @throws IllegalStateException if the plan is closed
     */
    public KernelArguments upload(WorkFifo fifo) {
        if (closed) {
            throw new IllegalStateException(this + ": the plan is closed");
        }
        if (storage != KernelArguments.WorkStorage.FIFO) {
            return placed;
        }
        MemorySegment copy =
                MemorySegment.ofArray(new long[(int) arguments.byteSize() / Long.BYTES]).copyFrom(arguments);
        return place(copy, fifo.address(), fifo.bytes() - 1, fifo.put(items));
    }

    public KernelMemory memory() {
        return memory;
    }

    /**
     * Returns the object that the launcher has attached for the next run; null before the first run. Called by one
     * thread at a time.
     */
    public @Nullable Object attachment() {
        return attachment;
    }

    public void attach(Object kept) {
        attachment = kept;
    }

    /**
     * Returns the kind of memory that contains the work items. The kind depends on the size of the items, and on
     * whether the plan runs more than once.
     */
    public KernelArguments.WorkStorage storage() {
        return storage;
    }

    /**
     * Closes the plan: further runs are refused. Runs in progress continue, and the plan's memory stays valid until
     * {@link #free}.
     */
    @Override
    public void close() {
        closed = true;
    }

    /** Frees the plan's memory. All kernels of the plan must have left the device. May be called twice. */
    public void free() {
        close();
        if (own != null && own.scope().isAlive()) {
            own.close();
        }
    }

    /**
     * Returns whether the plan has no memory that {@link #free} must free. The result is true if the plan never had
     * memory, or if the memory is already freed.
     */
    public boolean isFree() {
        return own == null || !own.scope().isAlive();
    }

    /** Returns a description for messages: the name of the operation, or the number of operations. */
    @Override
    public String toString() {
        return owner + (operations == 1 ? first : "group of " + operations + " operations from " + first + " on");
    }
}
