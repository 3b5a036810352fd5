package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.util.function.BooleanSupplier;
import java.util.random.RandomGenerator;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.MemoryFrames;

/**
 * The staging buffers of a device, and the copies between the buffers and windows. All windows of the device share the
 * buffers. With a random generator, copies complete later, in any order. Without a random generator, copies complete at
 * once or when the test decides.
 */
final class StagedDevice implements StagingBuffers.Copies {

    final StagingBuffers buffers;
    /** Whether new copies complete only in {@link #finishHeld}. */
    boolean holding;
    int refusals;
    /** Number of transfers that have a buffer. */
    int open;
    /** Whether the connections are closed. They must be closed when a transfer is abandoned. */
    BooleanSupplier networkIsClosed = () -> true;
    private final MemoryRegion staging;
    private final int slotBytes;
    private final RandomGenerator random;
    private final Runnable[] pending;
    private final boolean[] held;
    private final boolean[] marked;

    StagedDevice(MemorySegment staging, int slots, RandomGenerator random) {
        this.staging = MemoryFrames.region(staging);
        this.slotBytes = (int) (staging.byteSize() / slots);
        this.random = random;
        this.pending = new Runnable[slots];
        this.held = new boolean[slots];
        this.marked = new boolean[slots];
        this.buffers = new StagingBuffers(slots, this);
    }

    MemoryRegion staging() {
        return staging;
    }

    boolean open(int slot, WindowTransfer transfer, long offset, long bytes) {
        if (slot < 0) {
            refusals++;
            return false;
        }
        assertNull(pending[slot], "a copy is still under way in the buffer that was taken");
        open++;
        transfer.slot(slot);
        transfer.place(staging, (long) slot * slotBytes, offset, bytes);
        return true;
    }

    void begin(WindowTransfer transfer, Runnable copy) {
        pending[transfer.slot()] = copy;
        held[transfer.slot()] = holding;
    }

    void release(WindowTransfer transfer) {
        open--;
        buffers.give(transfer.slot());
    }

    void abandon(WindowTransfer transfer) {
        assertTrue(networkIsClosed.getAsBoolean(), "a buffer is given up that the network may still use");
        open--;
        buffers.abandon(transfer.slot());
    }

    @Override
    public void mark() {
        for (int slot = 0; slot < pending.length; slot++) {
            marked[slot] = pending[slot] != null;
        }
    }

    @Override
    public boolean arePastMark() {
        for (int slot = 0; slot < pending.length; slot++) {
            if (marked[slot] && !isFinished(slot)) {
                return false;
            }
        }
        return true;
    }

    boolean isFinished(WindowTransfer transfer) {
        return isFinished(transfer.slot());
    }

    private boolean isFinished(int slot) {
        if (pending[slot] != null && !held[slot] && (random == null || random.nextInt(4) == 0)) {
            finish(slot);
        }
        return pending[slot] == null;
    }

    private void finish(int slot) {
        pending[slot].run();
        pending[slot] = null;
    }

    /**
     * Completes the copies that were held back because of {@link #holding}, and sets {@link #holding} to false. Returns
     * the number of completed copies.
     */
    int finishHeld() {
        int finished = 0;
        for (int slot = 0; slot < pending.length; slot++) {
            if (pending[slot] != null && held[slot]) {
                finish(slot);
                finished++;
            }
        }
        holding = false;
        return finished;
    }
}
