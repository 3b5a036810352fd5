package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.cuda.DeviceSegments;
import org.millrace.ffi.nccl.nccl_h;

/** Device memory that all ranks of a communicator registered together, until this is closed. */
public final class NcclWindow implements AutoCloseable {

    private final NcclCommunicator communicator;
    private final MemorySegment slot;
    private final AtomicBoolean closed = new AtomicBoolean();

    NcclWindow(NcclCommunicator communicator, MemorySegment slot) {
        this.communicator = communicator;
        this.slot = slot;
    }

    static NcclWindow of(NcclCommunicator communicator, MemorySegment memory, boolean symmetric) {
        communicator.library.require(NcclFunction.COMM_WINDOW_REGISTER);
        if (symmetric && memory.address() % nccl_h.NCCL_WIN_REQUIRED_ALIGNMENT() != 0) {
            throw new IllegalArgumentException("a symmetric window begins at a multiple of "
                    + nccl_h.NCCL_WIN_REQUIRED_ALIGNMENT() + ", not at 0x" + Long.toHexString(memory.address()));
        }
        MemorySegment address = DeviceSegments.pointer("memory to register", memory, 0);
        int flags = symmetric ? nccl_h.NCCL_WIN_COLL_SYMMETRIC() : nccl_h.NCCL_WIN_DEFAULT();
        // Like a child communicator, a window may be written after the call has returned.
        MemorySegment slot = Arena.global().allocate(ValueLayout.ADDRESS);
        communicator.enter(NcclFunction.COMM_WINDOW_REGISTER,
                handle -> nccl_h.ncclCommWindowRegister(handle, address, memory.byteSize(), slot, flags));
        return new NcclWindow(communicator, slot);
    }

    /**
     * {@return the {@code ncclWindow_t} that kernels which use NCCL's device functions are given; 0 where NCCL has no
     * windows for this machine, or as long as the group or the communicator that registers it goes on}
     */
    public long address() {
        return slot.get(ValueLayout.ADDRESS, 0).address();
    }

    /** Takes the window back; nothing to do if the communicator is closed already. Closing twice is allowed. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            communicator.release(NcclFunction.COMM_WINDOW_DEREGISTER,
                    handle -> nccl_h.ncclCommWindowDeregister(handle, slot.get(ValueLayout.ADDRESS, 0)));
        }
    }
}
