package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A window that imitates GPU memory: the network can access only the staging buffers of the device. */
final class StagedMemory implements WindowMemory {

    private final MemorySegment memory;
    private final StagedDevice device;
    /** Memory of this window at each rank; null if this rank's device cannot access that memory. */
    private final MemorySegment[] peers = new MemorySegment[2];
    /** Number of direct copies between this window and the window of a peer. */
    int copies;
    int reads;
    /** Whether the last direct copy had to follow all earlier copies of its sequence. */
    boolean ordered;

    StagedMemory(MemorySegment memory, StagedDevice device) {
        this.memory = memory;
        this.device = device;
    }

    void reach(int peer, MemorySegment theirs) {
        peers[peer] = theirs;
    }

    @Override
    public long reach(int peer) {
        return peers[peer] == null ? 0 : peers[peer].byteSize();
    }

    @Override
    public boolean beginPeerCopy(WindowTransfer transfer, int peer, long offset, WindowMemory source, long sourceOffset,
            long bytes) {
        copies++;
        return beginDirect(transfer, offset, ((StagedMemory) source).memory, sourceOffset, peers[peer], offset, bytes);
    }

    @Override
    public boolean beginPeerRead(WindowTransfer transfer, int peer, long offset, WindowMemory target, long targetOffset,
            long bytes) {
        reads++;
        return beginDirect(transfer, offset, peers[peer], offset, ((StagedMemory) target).memory, targetOffset, bytes);
    }

    /** Begins a direct copy. A direct copy needs no staging buffer, but here it holds one until it is complete. */
    private boolean beginDirect(WindowTransfer transfer, long offset, MemorySegment from, long fromOffset,
            MemorySegment to, long toOffset, long bytes) {
        if (!device.open(device.buffers.takeToSend(), transfer, offset, bytes)) {
            return false;
        }
        ordered = transfer.isStrict();
        device.begin(transfer, () -> MemorySegment.copy(from, fromOffset, to, toOffset, bytes));
        return true;
    }

    @Override
    public long bytes() {
        return memory.byteSize();
    }

    @Override
    public boolean openRead(WindowTransfer transfer, long offset, long bytes) {
        if (!device.open(device.buffers.takeToSend(), transfer, offset, bytes)) {
            return false;
        }
        device.begin(transfer,
                () -> MemorySegment.copy(memory, offset, device.staging().segment(), transfer.regionOffset(), bytes));
        return true;
    }

    @Override
    public boolean readable(WindowTransfer transfer) {
        return device.isFinished(transfer);
    }

    @Override
    public boolean isCopied() {
        return true;
    }

    @Override
    public boolean openWrite(WindowTransfer transfer, long offset, long bytes) {
        return device.open(device.buffers.takeToReceive(), transfer, offset, bytes);
    }

    @Override
    public void arrived(WindowTransfer transfer) {
        device.begin(transfer, () -> MemorySegment.copy(device.staging().segment(), transfer.regionOffset(), memory,
                transfer.offset(), transfer.bytes()));
    }

    @Override
    public boolean written(WindowTransfer transfer) {
        return device.isFinished(transfer);
    }

    @Override
    public boolean beginCopy(WindowTransfer transfer, long offset, WindowMemory source, long sourceOffset, long bytes) {
        if (!device.open(device.buffers.takeToReceive(), transfer, offset, bytes)) {
            return false;
        }
        device.begin(transfer,
                () -> MemorySegment.copy(((StagedMemory) source).memory, sourceOffset, memory, offset, bytes));
        return true;
    }

    @Override
    public boolean beginAdd(WindowTransfer transfer, long offset, long value) {
        if (!device.open(device.buffers.takeToAdd(), transfer, offset, Long.BYTES)) {
            return false;
        }
        device.begin(transfer,
                () -> memory.set(ValueLayout.JAVA_LONG, offset, memory.get(ValueLayout.JAVA_LONG, offset) + value));
        return true;
    }

    @Override
    public boolean beginCopyOut(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        if (!device.open(device.buffers.takeToSend(), transfer, offset, bytes)) {
            return false;
        }
        device.begin(transfer, () -> MemorySegment.copy(memory, offset, ring.memory(), ringOffset, bytes));
        return true;
    }

    @Override
    public boolean beginCopyIn(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long bytes) {
        if (!device.open(device.buffers.takeToReceive(), transfer, offset, bytes)) {
            return false;
        }
        device.begin(transfer, () -> MemorySegment.copy(ring.memory(), ringOffset, memory, offset, bytes));
        return true;
    }

    @Override
    public void release(WindowTransfer transfer) {
        device.release(transfer);
    }

    @Override
    public void abandon(WindowTransfer transfer) {
        device.abandon(transfer);
    }

    @Override
    public void close() {
        // the memory belongs to the test
    }
}
