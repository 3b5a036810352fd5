package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.nccl.nccl_h;

/**
 * The GPU memory that NCCL itself uses for a communicator: {@link NcclCommunicator#memory()}. NCCL can free a part of
 * this memory and allocate it again later. While a program does not need the communicator, it can request that NCCL
 * frees this part. Requires NCCL 2.29.7.
 */
public final class NcclMemory {

    /** Kinds of memory, in the order of {@code ncclCommMemStat_t}. */
    public enum Kind {
        /** Memory that NCCL can free and allocate again. */
        SUSPENDABLE,
        /**
         * State of the suspendable memory. {@link NcclMemory#bytes} returns this state and not a size: 1 from
         * {@link NcclMemory#suspend} until {@link NcclMemory#resume}, otherwise 0.
         */
        SUSPENDED,
        /** Memory that NCCL cannot free. */
        PERSISTENT,
        /** All memory that NCCL uses for the communicator. */
        TOTAL
    }

    private final NcclCommunicator communicator;

    NcclMemory(NcclCommunicator communicator) {
        this.communicator = communicator;
    }

    /** {@return the number of bytes of a kind of memory; 0 or 1 for {@link Kind#SUSPENDED}} */
    public long bytes(Kind kind) {
        communicator.library.require(NcclFunction.COMM_MEM_STATS);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            communicator.enter(NcclFunction.COMM_MEM_STATS,
                    handle -> nccl_h.ncclCommMemStats(handle, kind.ordinal(), out));
            return out.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /** {@return true from {@link #suspend} until {@link #resume}: the suspendable memory is freed in this period} */
    public boolean isSuspended() {
        return bytes(Kind.SUSPENDED) != 0;
    }

    /**
     * Frees the {@linkplain Kind#SUSPENDABLE suspendable} memory. All ranks must call this method, after their
     * operations are complete. The communicator cannot be used until {@link #resume}.
     */
    public void suspend() {
        communicator.library.require(NcclFunction.COMM_SUSPEND);
        communicator.enter(NcclFunction.COMM_SUSPEND,
                handle -> nccl_h.ncclCommSuspend(handle, nccl_h.NCCL_SUSPEND_MEM()));
    }

    /**
     * Allocates again the memory that {@link #suspend} freed. All ranks must call this method.
     *
     * @throws NcclException if NCCL refuses, for example because too little memory is free
     */
    public void resume() {
        communicator.library.require(NcclFunction.COMM_RESUME);
        communicator.enter(NcclFunction.COMM_RESUME, nccl_h::ncclCommResume);
    }
}
