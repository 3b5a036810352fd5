package org.millrace.plugin.gin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.millrace.cuda.driver.CopyOrder;
import org.millrace.gin.StagingBuffers;
import org.millrace.gin.StagingRing;
import org.millrace.gin.WindowMemory;
import org.millrace.gin.WindowTransfer;
import org.millrace.plugin.gin.CudaMemory.PeerMappings;

/**
 * A window in a GPU's memory. Pinned memory stages data to and from the network. Copies of both directions are in
 * flight at the same time. Data for a reachable peer is copied from GPU to GPU.
 */
final class CudaWindowMemory extends CudaMemory {

    /**
     * Operations in flight that change single numbers in this window, in the order of their start. An operation is an
     * addition to a number, or a copy of a number. The first {@link #additionCount} elements are in use.
     */
    private final Addition[] additions = new Addition[StagingBuffers.MAX_ADDED];
    private int additionCount;
    /** Number of used elements of {@link #additions} that copy a number. */
    private int numberCopies;

    /**
     * An addition in flight. It first reads the old value into a staging buffer, and then stores the sum. A copy of a
     * number has the same two phases, but reads the source's value and stores it unchanged.
     */
    private static final class Addition {
        private @Nullable WindowTransfer transfer;
        private long addend;
        private boolean isCopy;
        private boolean stored;
    }

    /** Creates a window's memory, with the mappings of the peers' parts of the window. */
    public CudaWindowMemory(CudaMover mover, long address, long bytes, PeerMappings peers) {
        super(mover, address, bytes, peers);
        Arrays.setAll(additions, unused -> new Addition());
    }

    @Override
    public boolean openRead(WindowTransfer transfer, long offset, long length) {
        int buffer = mover.out().hasRoom() ? mover.staging().buffers().takeToSend() : -1;
        if (buffer < 0) {
            return false;
        }
        place(transfer, buffer, offset, length);
        try {
            transfer.ticket(
                    mover.out().copy(mover.staging().address(buffer), address + offset, length, CopyOrder.FREE));
        } catch (Throwable failure) {
            // The transfer has not begun, so this code must release the buffer.
            mover.staging().buffers().abandon(buffer);
            throw failure;
        }
        return true;
    }

    @Override
    public boolean readable(WindowTransfer transfer) {
        return isCopiedOut(transfer);
    }

    /** Returns true, because the bytes of a readable transfer are already in a staging buffer or in a peer's memory. */
    @Override
    public boolean isCopied() {
        return true;
    }

    @Override
    public boolean openWrite(WindowTransfer transfer, long offset, long length) {
        int buffer = mover.staging().buffers().takeToReceive();
        if (buffer < 0) {
            return false;
        }
        place(transfer, buffer, offset, length);
        return true;
    }

    private void place(WindowTransfer transfer, int buffer, long offset, long length) {
        transfer.slot(buffer);
        transfer.place(mover.staging().region(), mover.staging().offset(buffer), offset, length);
    }

    @Override
    public void arrived(WindowTransfer transfer) {
        int buffer = transfer.slot();
        transfer.ticket(mover.in()
                .copyFromHost(address + transfer.offset(), mover.staging().address(buffer), transfer.bytes(),
                        orderOf(transfer)));
    }

    @Override
    public boolean written(WindowTransfer transfer) {
        if (!mover.in().isDone(transfer.ticket())) {
            return false;
        }
        int index = additionOf(transfer);
        if (index < 0) {
            return true;
        }
        if (additions[index].stored) {
            remove(index);
            return true;
        }
        storeSums();
        return false;
    }

    /**
     * Begins to store the sums of additions, in the order of their start. Stops at the first addition that has not read
     * its old value.
     */
    private void storeSums() {
        for (int i = 0; i < additionCount; i++) {
            Addition addition = additions[i];
            WindowTransfer transfer = addition.transfer;
            if (!addition.stored) {
                if (!mover.in().isDone(transfer.ticket())) {
                    return;
                }
                addition.stored = true;
                if (!addition.isCopy) {
                    long staged = mover.staging().offset(transfer.slot());
                    MemorySegment host = mover.staging().host();
                    host.set(ValueLayout.JAVA_LONG, staged, host.get(ValueLayout.JAVA_LONG, staged) + addition.addend);
                }
                transfer.ticket(mover.in()
                        .copyFromHost(address + transfer.offset(), mover.staging().address(transfer.slot()),
                                transfer.bytes(), CopyOrder.IN_TURN));
            }
        }
    }

    private int additionOf(WindowTransfer transfer) {
        for (int i = 0; i < additionCount; i++) {
            if (additions[i].transfer == transfer) {
                return i;
            }
        }
        return -1;
    }

    private void remove(int index) {
        Addition removed = additions[index];
        removed.transfer = null;
        numberCopies -= removed.isCopy ? 1 : 0;
        additionCount--;
        System.arraycopy(additions, index + 1, additions, index, additionCount - index);
        additions[additionCount] = removed;
    }

    /**
     * Begins to add a value to a signal. Only the agent and the program change a signal, and the program changes a
     * signal only to reset it. The agent executes one addition to a signal at a time: it reads the signal and then
     * stores the sum. No addition is therefore lost.
     */
    @Override
    public boolean beginAdd(WindowTransfer transfer, long offset, long value) {
        for (int i = 0; i < additionCount; i++) {
            if (additions[i].transfer.offset() == offset) {
                // An addition to these bytes is in flight. A read now would return the value before that addition.
                return false;
            }
        }
        return beginAddition(transfer, offset, address + offset, Long.BYTES, CopyOrder.FREE, false, value);
    }

    /**
     * Begins to read a value into a staging buffer. After the read, {@link #storeSums} adds to the value and stores the
     * sum. Returns false if the read has no room in the queue.
     */
    private boolean beginAddition(WindowTransfer transfer, long offset, long from, long length, int order,
            boolean isCopy, long addend) {
        int buffer =
                additionCount < additions.length && mover.in().hasRoom() ? mover.staging().buffers().takeToAdd() : -1;
        if (buffer < 0) {
            return false;
        }
        place(transfer, buffer, offset, length);
        try {
            transfer.ticket(mover.in().copy(mover.staging().address(buffer), from, length, order));
        } catch (Throwable failure) {
            // The addition is not recorded, so this code must release the buffer.
            mover.staging().buffers().abandon(buffer);
            throw failure;
        }
        Addition added = additions[additionCount++];
        added.transfer = transfer;
        added.addend = addend;
        added.isCopy = isCopy;
        added.stored = false;
        numberCopies += isCopy ? 1 : 0;
        return true;
    }

    /**
     * Begins a copy into this window. A copy from another window of the GPU passes through a staging buffer in host
     * memory. A copy within the GPU would wait for kernels of other contexts. A kernel may poll a number of 4 or 8
     * bytes. Such a number is stored only after all of it has reached the staging buffer. Later copies begin after this
     * store.
     */
    @Override
    public boolean beginCopy(WindowTransfer transfer, long offset, WindowMemory source, long sourceOffset,
            long length) {
        boolean waits = numberCopies > 0 || source instanceof CudaWindowMemory other && other.numberCopies > 0;
        if (waits || !mover.in().hasRoom()) {
            return false;
        }
        long from = addressIn(source, sourceOffset);
        if (source instanceof CudaHostMemory) {
            transfer.slot(COPIED_HERE);
            transfer.place(null, 0, offset, length);
        } else if ((length == Integer.BYTES || length == Long.BYTES) && (address + offset) % length == 0) {
            return beginAddition(transfer, offset, from, length, CopyOrder.IN_TURN, true, 0);
        } else {
            int buffer = mover.staging().buffers().takeToReceive();
            if (buffer < 0) {
                return false;
            }
            place(transfer, buffer, offset, length);
            mover.in().copy(mover.staging().address(buffer), from, length);
            from = mover.staging().address(buffer);
        }
        transfer.ticket(mover.in().copyFromHost(address + offset, from, length, CopyOrder.IN_TURN));
        return true;
    }

    @Override
    public boolean beginCopyOut(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long length) {
        return beginOut(transfer, ring.device() + ringOffset, offset, length);
    }

    @Override
    public boolean beginCopyIn(WindowTransfer transfer, long offset, StagingRing ring, long ringOffset, long length) {
        if (!mover.in().hasRoom()) {
            return false;
        }
        transfer.slot(COPIED_HERE);
        transfer.place(null, 0, offset, length);
        transfer.ticket(
                mover.in().copyFromHost(address + offset, ring.device() + ringOffset, length, orderOf(transfer)));
        return true;
    }

    @Override
    public void release(WindowTransfer transfer) {
        if (transfer.slot() >= 0) {
            mover.staging().buffers().give(transfer.slot());
        }
    }

    @Override
    public void abandon(WindowTransfer transfer) {
        int index = additionOf(transfer);
        if (index >= 0) {
            remove(index);
        }
        // Submits the copies that were held back to form batches. Memory is freed only after these copies are complete.
        mover.submit();
        if (transfer.slot() >= 0) {
            mover.staging().buffers().abandon(transfer.slot());
        }
    }

    @Override
    public String toString() {
        return "device memory of " + bytes() + " bytes at 0x" + Long.toHexString(address);
    }
}
