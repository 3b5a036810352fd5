package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.random.RandomGenerator;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.MemoryFrames;

/**
 * A window as a GPU's is: the network reaches staging buffers only, and copies between them and the window end some time later, in any order; at once without
 * a random.
 */
final class StagedMemory implements WindowMemory {

    private final MemorySegment memory;
    private final MemoryRegion staging;
    private final int slotBytes;
    private final StagingBuffers buffers;
    private final RandomGenerator random;
    private final Runnable[] pending;
    int refusals;

    StagedMemory(MemorySegment memory, MemorySegment staging, int slots, RandomGenerator random) {
        this.memory = memory;
        this.staging = MemoryFrames.region(staging);
        this.slotBytes = (int) (staging.byteSize() / slots);
        this.random = random;
        this.pending = new Runnable[slots];
        this.buffers = new StagingBuffers(slots);
    }

    private boolean open(int slot, Transfer transfer, long offset, long bytes) {
        if (slot < 0) {
            refusals++;
            return false;
        }
        transfer.slot(slot);
        transfer.place(staging, (long) slot * slotBytes, offset, bytes);
        return true;
    }

    private boolean finished(Transfer transfer) {
        Runnable copy = pending[transfer.slot()];
        if (copy != null && (random == null || random.nextInt(4) == 0)) {
            copy.run();
            pending[transfer.slot()] = null;
        }
        return pending[transfer.slot()] == null;
    }

    @Override
    public long bytes() {
        return memory.byteSize();
    }

    @Override
    public boolean openRead(Transfer transfer, long offset, long bytes) {
        if (!open(buffers.takeToSend(), transfer, offset, bytes)) {
            return false;
        }
        pending[transfer.slot()] = () -> MemorySegment.copy(memory, offset, staging.segment(), transfer.regionOffset(), bytes);
        return true;
    }

    @Override
    public boolean readable(Transfer transfer) {
        return finished(transfer);
    }

    @Override
    public boolean isCopied() {
        return true;
    }

    @Override
    public boolean openWrite(Transfer transfer, long offset, long bytes) {
        return open(buffers.takeToReceive(), transfer, offset, bytes);
    }

    @Override
    public void arrived(Transfer transfer) {
        pending[transfer.slot()] = () -> MemorySegment.copy(staging.segment(), transfer.regionOffset(), memory, transfer.offset(), transfer.bytes());
    }

    @Override
    public boolean written(Transfer transfer) {
        return finished(transfer);
    }

    @Override
    public boolean beginCopy(Transfer transfer, long offset, WindowMemory source, long sourceOffset, long bytes) {
        if (!open(buffers.takeToReceive(), transfer, offset, bytes)) {
            return false;
        }
        pending[transfer.slot()] = () -> MemorySegment.copy(((StagedMemory) source).memory, sourceOffset, memory, offset, bytes);
        return true;
    }

    @Override
    public boolean beginAdd(Transfer transfer, long offset, long value) {
        if (!open(buffers.takeToAdd(), transfer, offset, Long.BYTES)) {
            return false;
        }
        pending[transfer.slot()] = () -> memory.set(ValueLayout.JAVA_LONG, offset, memory.get(ValueLayout.JAVA_LONG, offset) + value);
        return true;
    }

    @Override
    public boolean beginCopyOut(Transfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        if (!open(buffers.takeToSend(), transfer, offset, bytes)) {
            return false;
        }
        pending[transfer.slot()] = () -> MemorySegment.copy(memory, offset, ring.memory(), ringOffset, bytes);
        return true;
    }

    @Override
    public boolean beginCopyIn(Transfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        if (!open(buffers.takeToReceive(), transfer, offset, bytes)) {
            return false;
        }
        pending[transfer.slot()] = () -> MemorySegment.copy(ring.memory(), ringOffset, memory, offset, bytes);
        return true;
    }

    @Override
    public void release(Transfer transfer) {
        buffers.give(transfer.slot());
    }

    @Override
    public void close() {
        // nothing was taken
    }
}
