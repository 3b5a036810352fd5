package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.millrace.MillraceException;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.abi.kernel.WorkBatch;
import org.millrace.abi.kernel.WorkFifoCounters;
import org.millrace.abi.kernel.WorkType;

/**
 * Reader of a block's work. It iterates over the batches of the block's channel. It copies the work items to its own
 * memory, just as NCCL's kernels copy them to shared memory. Several blocks of one thread may use one reader, one block
 * after another.
 */
final class WorkReader {

    private final WorkFifoCounters counters;
    private final MemorySegment own = MemorySegment.ofArray(new long[WorkBatch.MAX_ITEM_BYTES / Long.BYTES]);
    private KernelArguments arguments;
    private int batch;
    private boolean ended;
    private WorkType type;
    private int function;
    private int items;

    /** @param counters counters of the FIFO, which show whether the work items are still in the FIFO */
    WorkReader(WorkFifoCounters counters) {
        this.counters = counters;
    }

    /** Goes to the first batch of a block. */
    void begin(KernelArguments kernelArguments, int block) {
        arguments = kernelArguments;
        batch = block;
        ended = false;
    }

    /**
     * Loads the next batch together with the batches that extend it. Returns false if the block has no further batch.
     *
     * @throws MillraceException if the batch is not valid, which means that its memory was overwritten
     */
    boolean next() {
        if (ended) {
            return false;
        }
        items = 0;
        boolean extended;
        do {
            long at = KernelArguments.batchOffset(batch);
            if (at + WorkBatch.BYTES > arguments.segment().byteSize()) {
                throw damaged(
                        "batch " + batch + " lies behind its arguments' " + arguments.segment().byteSize() + " bytes");
            }
            type = WorkBatch.type(arguments.segment(), at);
            function = WorkBatch.function(arguments.segment(), at);
            load(WorkBatch.offsetBase(arguments.segment(), at), WorkBatch.offsetBitset(arguments.segment(), at));
            extended = WorkBatch.nextExtends(arguments.segment(), at);
            int jump = WorkBatch.nextJump(arguments.segment(), at);
            ended = jump == 0;
            batch += jump;
        } while (extended && !ended);
        return true;
    }

    private void load(int base, long set) {
        int size = type.itemBytes();
        for (long rest = set; rest != 0; rest &= rest - 1) {
            if ((items + 1) * size > WorkBatch.MAX_ITEM_BYTES) {
                throw damaged("batch " + batch + " has more than " + WorkBatch.MAX_ITEM_BYTES + " bytes of items");
            }
            copyItem(base + Long.numberOfTrailingZeros(rest) * size, size);
            items++;
        }
    }

    private void copyItem(int position, int size) {
        long target = (long) items * size;
        switch (arguments.storage()) {
            case ARGUMENTS -> MemorySegment.copy(arguments.segment(), position, own, target, size);
            case PERSISTENT -> MemorySegment.copy(memory(Integer.toUnsignedLong(position) + size),
                    Integer.toUnsignedLong(position), own, target, size);
            case FIFO -> copyFromFifo(position, target, size);
        }
    }

    private void copyFromFifo(int position, long target, int size) {
        int mask = arguments.workMask();
        // The host copies the items, and then stores the counter with a release. This acquire pairs with that release,
        // so all bytes before the counter are visible.
        int behind = counters.producedAcquire() - position;
        if (Integer.compareUnsigned(behind, size) < 0 || Integer.compareUnsigned(behind, mask + 1) > 0) {
            throw damaged("work at " + Integer.toUnsignedString(position) + " is not in the FIFO of " + (mask + 1)
                    + " bytes, which was filled up to " + Integer.toUnsignedString(position + behind));
        }
        MemorySegment fifo = memory(mask + 1L);
        for (int at = 0; at < size; at += WorkFifo.UNIT) {
            MemorySegment.copy(fifo, position + at & mask, own, target + at, WorkFifo.UNIT);
        }
    }

    @SuppressWarnings("restricted") // safe: the arguments contain the items' address, as on a GPU
    private MemorySegment memory(long bytes) {
        return MemorySegment.ofAddress(arguments.workBuffer()).reinterpret(bytes);
    }

    private static MillraceException damaged(String what) {
        return new MillraceException("a kernel's work is damaged: " + what);
    }

    WorkType type() {
        return type;
    }

    int function() {
        return function;
    }

    int items() {
        return items;
    }

    /** Returns the memory of a work item. The memory is valid until the next batch is loaded. */
    MemorySegment item(int index) {
        return own.asSlice((long) index * type.itemBytes(), type.itemBytes());
    }
}
