package org.millrace.gin.cuda;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;
import org.millrace.cuda.copy.CopyOrder;
import org.millrace.gin.window.StagingRing;
import org.millrace.gin.window.WindowTransfer;

/**
 * A window in a GPU's memory. What comes over the network is staged in pinned memory, and copies of both directions are
 * in flight at once; what a peer in reach is to have is copied there from GPU to GPU.
 */
public final class CudaWindowMemory extends CudaMemory {

    /**
     * The one add that is under way in this window, if any, and how far it is: its old value was read, and its new one
     * is being stored.
     */
    private @Nullable WindowTransfer addition;
    private long addend;
    private boolean addRead;

    /** A window's memory, and where peers have theirs of the same window. */
    public CudaWindowMemory(CudaMover mover, long address, long bytes, PeerMappings peers) {
        super(mover, address, bytes, peers);
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
            mover.staging().buffers().abandon(buffer); // the transfer is not open: nobody else will
            throw failure;
        }
        return true;
    }

    @Override
    public boolean readable(WindowTransfer transfer) {
        return isCopiedOut(transfer);
    }

    /** Both a staging buffer and a peer's memory hold a copy by then. */
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
        transfer.ticket(bring(address + transfer.offset(), mover.staging().host(), mover.staging().offset(buffer),
                mover.staging().address(buffer), transfer.bytes(), orderOf(transfer)));
    }

    /** A value of 4 or 8 bytes travels in the stream's own commands: quicker than a copy. */
    private long bring(long to, MemorySegment host, long hostOffset, long from, long length, int order) {
        if (length == Long.BYTES && to % Long.BYTES == 0) {
            return mover.in().storeLong(to, host.get(ValueLayout.JAVA_LONG, hostOffset));
        }
        if (length == Integer.BYTES && to % Integer.BYTES == 0) {
            return mover.in().storeInt(to, host.get(ValueLayout.JAVA_INT, hostOffset));
        }
        return mover.in().copy(to, from, length, order);
    }

    @Override
    public boolean written(WindowTransfer transfer) {
        if (transfer != addition) {
            return mover.in().isDone(transfer.ticket());
        }
        if (!mover.in().isDone(transfer.ticket())) {
            return false;
        }
        if (!addRead) {
            addRead = true;
            long value = mover.staging().host().get(ValueLayout.JAVA_LONG, mover.staging().offset(transfer.slot()));
            transfer.ticket(mover.in().storeLong(address + transfer.offset(), value + addend));
            return false;
        }
        addition = null;
        return true;
    }

    /**
     * Nobody but the agent changes a signal that is not reset meanwhile, so that reading and storing it, one at a time,
     * is adding to it. The one buffer for adds is free when none is under way.
     */
    @Override
    public boolean beginAdd(WindowTransfer transfer, long offset, long value) {
        int buffer = mover.staging().buffers().takeToAdd();
        if (buffer < 0) {
            return false;
        }
        place(transfer, buffer, offset, Long.BYTES);
        try {
            transfer.ticket(mover.in().copy(mover.staging().address(buffer), address + offset, Long.BYTES));
        } catch (Throwable failure) {
            mover.staging().buffers().abandon(buffer); // as in openRead
            throw failure;
        }
        addition = transfer;
        addend = value;
        addRead = false;
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
        transfer.ticket(bring(address + offset, ring.memory(), ringOffset, ring.device() + ringOffset, length,
                orderOf(transfer)));
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
        mover.submit(); // what waits is begun now, so that whoever frees memory can wait for it
        if (transfer.slot() >= 0) {
            mover.staging().buffers().abandon(transfer.slot());
        }
    }

    @Override
    public String toString() {
        return "device memory of " + bytes() + " bytes at 0x" + Long.toHexString(address);
    }
}
