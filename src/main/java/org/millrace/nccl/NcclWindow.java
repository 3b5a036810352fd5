package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.cuda.DeviceSegments;
import org.millrace.ffi.nccl.nccl_h;

/**
 * Device memory that all ranks of a communicator have registered together. The registration ends when this object is
 * closed.
 */
public final class NcclWindow implements AutoCloseable {

    /** Options for the registration of a window. */
    public enum Flag {
        /**
         * All ranks register memory of the same size and layout, and the memory begins at a multiple of 4096. Kernels
         * can then access the memory directly.
         */
        SYMMETRIC(nccl_h.NCCL_WIN_COLL_SYMMETRIC()),
        /** The data of puts becomes visible in the order of the puts; requires NCCL 2.29.7. */
        STRICT_ORDERING(nccl_h.NCCL_WIN_STRICT_ORDERING());

        private final int bit;

        Flag(int bit) {
            this.bit = bit;
        }
    }

    private static final int STRICT_ORDERING_SINCE = 22907;

    private final NcclCommunicator communicator;
    private final MemorySegment slot;
    private final AtomicBoolean closed = new AtomicBoolean();

    NcclWindow(NcclCommunicator communicator, MemorySegment slot) {
        this.communicator = communicator;
        this.slot = slot;
    }

    static NcclWindow of(NcclCommunicator communicator, MemorySegment memory, Set<Flag> wanted) {
        communicator.library.require(NcclFunction.COMM_WINDOW_REGISTER);
        if (wanted.contains(Flag.STRICT_ORDERING)) {
            communicator.library.requireVersion("the window flag " + Flag.STRICT_ORDERING, STRICT_ORDERING_SINCE);
        }
        if (wanted.contains(Flag.SYMMETRIC) && memory.address() % nccl_h.NCCL_WIN_REQUIRED_ALIGNMENT() != 0) {
            throw new IllegalArgumentException("a symmetric window begins at a multiple of "
                    + nccl_h.NCCL_WIN_REQUIRED_ALIGNMENT() + ", not at 0x" + Long.toHexString(memory.address()));
        }
        MemorySegment address = DeviceSegments.pointer("memory to register", memory, 0);
        int flags = wanted.stream().mapToInt(flag -> flag.bit).reduce(nccl_h.NCCL_WIN_DEFAULT(), (a, b) -> a | b);
        // In a group, or with a non-blocking communicator, NCCL writes the window's address after the call has
        // returned. The memory for the address is therefore never freed.
        MemorySegment slot = Arena.global().allocate(ValueLayout.ADDRESS);
        communicator.enter(NcclFunction.COMM_WINDOW_REGISTER,
                handle -> nccl_h.ncclCommWindowRegister(handle, address, memory.byteSize(), slot, flags));
        return new NcclWindow(communicator, slot);
    }

    /**
     * {@return the {@code ncclWindow_t} for kernels that use NCCL's device functions; 0 if NCCL has no windows on this
     * machine. In a group, or with a non-blocking communicator, the result is also 0 until the registration is
     * complete}
     */
    public long address() {
        return slot.get(ValueLayout.ADDRESS, 0).address();
    }

    /** {@return the address at which this rank's GPU accesses this rank's memory in the window; requires NCCL 2.29} */
    public long memoryAddress() {
        communicator.library.require(NcclFunction.WIN_GET_USER_PTR);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            communicator.enter(NcclFunction.WIN_GET_USER_PTR,
                    handle -> nccl_h.ncclWinGetUserPtr(handle, slot.get(ValueLayout.ADDRESS, 0), out));
            return out.get(ValueLayout.ADDRESS, 0).address();
        }
    }

    /**
     * Returns the {@code ncclWindow_t}, for a call on the window's communicator. Throws if {@code caller} is another
     * communicator, or if the window is closed.
     */
    long addressFor(NcclCommunicator caller) {
        if (caller != communicator) {
            throw new IllegalArgumentException(
                    "the window was registered with " + communicator + " and cannot be used with " + caller);
        }
        if (closed.get()) {
            throw new IllegalStateException("a window of " + communicator + " is closed");
        }
        return address();
    }

    /** Deregisters the window. Does nothing if the communicator is already closed. May be called twice. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            communicator.release(NcclFunction.COMM_WINDOW_DEREGISTER,
                    handle -> nccl_h.ncclCommWindowDeregister(handle, slot.get(ValueLayout.ADDRESS, 0)));
        }
    }
}
