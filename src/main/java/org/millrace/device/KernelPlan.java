package org.millrace.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.KernelArguments;
import org.millrace.abi.WorkBatch;

/**
 * What one kernel will do: its arguments, with the batches, and the items that go where the arguments say. Made by
 * {@link PlanBuilder}; never changed after that.
 */
public final class KernelPlan implements AutoCloseable {

    private static final int NO_MASK = -1;

    private final String who;
    private final Object first;
    private final int operations;
    private final MemorySegment arguments;
    private final int batches;
    /** A copy of them, unless they lie in the arguments; null there. */
    private final @Nullable MemorySegment items;
    private final KernelMemory memory;
    private final KernelArguments.WorkStorage storage;
    private final @Nullable KernelArguments placed;
    /** Owner of the items of a plan that is run more than once; null for others. */
    private final @Nullable Arena own;
    private volatile boolean closed;
    /** Guarded by who launches. */
    private @Nullable Object attachment;

    /**
     * @param items what begins with so many bytes of items; copied
     */
    KernelPlan(String who, Object first, int operations, MemorySegment arguments, int batches, MemorySegment items,
            int itemBytes, KernelMemory memory) {
        this.who = who;
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

    /** Bytes that the plan needs in the FIFO for every run; 0 if its items lie elsewhere. */
    public int fifoBytes() {
        return storage == KernelArguments.WorkStorage.FIFO ? (int) items.byteSize() : 0;
    }

    /**
     * Puts the items in their place, in a FIFO with room for them, and says so in the arguments to launch the kernel
     * with.
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

    /** What the launcher keeps of one run for the next; null before the first. One thread at a time. */
    public @Nullable Object attachment() {
        return attachment;
    }

    public void attach(Object kept) {
        attachment = kept;
    }

    /** Where the items travel: their size decides, and whether the plan is replayed. */
    public KernelArguments.WorkStorage storage() {
        return storage;
    }

    /** Refuses further runs. Those under way go on, and need the plan's memory until {@link #free}. */
    @Override
    public void close() {
        closed = true;
    }

    /** Frees the plan's memory: none of its kernels is on the device any more. May be called twice. */
    public void free() {
        close();
        if (own != null && own.scope().isAlive()) {
            own.close();
        }
    }

    /** Whether the plan has no memory that {@link #free} would free. */
    public boolean isFree() {
        return own == null || !own.scope().isAlive();
    }

    /** What it does, for messages: the operation, or how many there are. */
    @Override
    public String toString() {
        return who + (operations == 1 ? first : "group of " + operations + " operations from " + first + " on");
    }
}
