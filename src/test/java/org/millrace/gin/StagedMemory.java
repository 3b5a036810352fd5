package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A window as a GPU's is: the network reaches its device's staging buffers only. */
final class StagedMemory implements WindowMemory {

    private final MemorySegment memory;
    private final StagedDevice device;

    StagedMemory(MemorySegment memory, StagedDevice device) {
        this.memory = memory;
        this.device = device;
    }

    @Override
    public long bytes() {
        return memory.byteSize();
    }

    @Override
    public boolean openRead(Transfer transfer, long offset, long bytes) {
        if (!device.open(device.buffers.takeToSend(), transfer, offset, bytes)) {
            return false;
        }
        device.begin(transfer, () -> MemorySegment.copy(memory, offset, device.staging().segment(), transfer.regionOffset(), bytes));
        return true;
    }

    @Override
    public boolean readable(Transfer transfer) {
        return device.isFinished(transfer);
    }

    @Override
    public boolean isCopied() {
        return true;
    }

    @Override
    public boolean openWrite(Transfer transfer, long offset, long bytes) {
        return device.open(device.buffers.takeToReceive(), transfer, offset, bytes);
    }

    @Override
    public void arrived(Transfer transfer) {
        device.begin(transfer, () -> MemorySegment.copy(device.staging().segment(), transfer.regionOffset(), memory, transfer.offset(), transfer.bytes()));
    }

    @Override
    public boolean written(Transfer transfer) {
        return device.isFinished(transfer);
    }

    @Override
    public boolean beginCopy(Transfer transfer, long offset, WindowMemory source, long sourceOffset, long bytes) {
        if (!device.open(device.buffers.takeToReceive(), transfer, offset, bytes)) {
            return false;
        }
        device.begin(transfer, () -> MemorySegment.copy(((StagedMemory) source).memory, sourceOffset, memory, offset, bytes));
        return true;
    }

    @Override
    public boolean beginAdd(Transfer transfer, long offset, long value) {
        if (!device.open(device.buffers.takeToAdd(), transfer, offset, Long.BYTES)) {
            return false;
        }
        device.begin(transfer, () -> memory.set(ValueLayout.JAVA_LONG, offset, memory.get(ValueLayout.JAVA_LONG, offset) + value));
        return true;
    }

    @Override
    public boolean beginCopyOut(Transfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        if (!device.open(device.buffers.takeToSend(), transfer, offset, bytes)) {
            return false;
        }
        device.begin(transfer, () -> MemorySegment.copy(memory, offset, ring.memory(), ringOffset, bytes));
        return true;
    }

    @Override
    public boolean beginCopyIn(Transfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        if (!device.open(device.buffers.takeToReceive(), transfer, offset, bytes)) {
            return false;
        }
        device.begin(transfer, () -> MemorySegment.copy(ring.memory(), ringOffset, memory, offset, bytes));
        return true;
    }

    @Override
    public void release(Transfer transfer) {
        device.release(transfer);
    }

    @Override
    public void abandon(Transfer transfer) {
        device.abandon(transfer);
    }

    @Override
    public void close() {
        // nothing was taken
    }
}
