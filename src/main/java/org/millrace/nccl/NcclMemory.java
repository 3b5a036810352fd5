package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.nccl.nccl_h;

/**
 * NCCL's own use of a GPU's memory for a communicator: {@link NcclCommunicator#memory()}. A program that does not need
 * the communicator for a while lets NCCL free the part that it can allocate again. NCCL 2.29.7.
 */
public final class NcclMemory {

    /** A kind of memory, in the order of {@code ncclCommMemStat_t}. */
    public enum Kind {
        /** Memory that NCCL can free and allocate again. */
        SUSPENDABLE,
        /** Not memory, but the state: 1 if that memory is freed now, otherwise 0. */
        SUSPENDED,
        /** Memory that NCCL cannot free. */
        PERSISTENT,
        /** All memory. */
        TOTAL
    }

    private final NcclCommunicator communicator;

    NcclMemory(NcclCommunicator communicator) {
        this.communicator = communicator;
    }

    /** {@return the number of bytes of a kind; the state for {@link Kind#SUSPENDED}} */
    public long bytes(Kind kind) {
        communicator.library.require(NcclFunction.COMM_MEM_STATS);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            communicator.enter(NcclFunction.COMM_MEM_STATS,
                    handle -> nccl_h.ncclCommMemStats(handle, kind.ordinal(), out));
            return out.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /** {@return whether the memory is freed now} */
    public boolean isSuspended() {
        return bytes(Kind.SUSPENDED) != 0;
    }

    /**
     * Frees the memory that NCCL can allocate again. All ranks call it after their operations are complete. The
     * communicator cannot be used until {@link #resume}.
     */
    public void suspend() {
        communicator.library.require(NcclFunction.COMM_SUSPEND);
        communicator.enter(NcclFunction.COMM_SUSPEND,
                handle -> nccl_h.ncclCommSuspend(handle, nccl_h.NCCL_SUSPEND_MEM()));
    }

    /**
     * Allocates the memory again. All ranks call it.
     *
     * @throws NcclException if NCCL refuses, for example because too little memory is left
     */
    public void resume() {
        communicator.library.require(NcclFunction.COMM_RESUME);
        communicator.enter(NcclFunction.COMM_RESUME, nccl_h::ncclCommResume);
    }
}
