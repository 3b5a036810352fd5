package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.nccl.nccl_h;

/**
 * What NCCL itself takes of a GPU's memory for a communicator: {@link NcclCommunicator#memory()}. A program that has
 * something else to do for a while lets NCCL give back what it can take again. NCCL 2.29.7.
 */
public final class NcclMemory {

    /** A kind of memory; the order is that of {@code ncclCommMemStat_t}. */
    public enum Kind {
        /** What can be given back. */
        SUSPENDABLE,
        /** Not memory, but whether it is given back now: 1, or 0. */
        SUSPENDED,
        /** What cannot be given back. */
        PERSISTENT,
        /** All. */
        TOTAL
    }

    private final NcclCommunicator communicator;

    NcclMemory(NcclCommunicator communicator) {
        this.communicator = communicator;
    }

    /** {@return how many bytes there are of a kind; a number of its own for {@link Kind#SUSPENDED}} */
    public long bytes(Kind kind) {
        communicator.library.require(NcclFunction.COMM_MEM_STATS);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            communicator.enter(NcclFunction.COMM_MEM_STATS,
                    handle -> nccl_h.ncclCommMemStats(handle, kind.ordinal(), out));
            return out.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /** {@return whether it is given back now} */
    public boolean isSuspended() {
        return bytes(Kind.SUSPENDED) != 0;
    }

    /**
     * Gives back what can be taken again. All ranks do so, when their operations are complete; the communicator cannot
     * be used until {@link #resume}.
     */
    public void suspend() {
        communicator.library.require(NcclFunction.COMM_SUSPEND);
        communicator.enter(NcclFunction.COMM_SUSPEND,
                handle -> nccl_h.ncclCommSuspend(handle, nccl_h.NCCL_SUSPEND_MEM()));
    }

    /**
     * Takes it again. All ranks do so.
     *
     * @throws NcclException if NCCL refuses, as when there is not that much memory left
     */
    public void resume() {
        communicator.library.require(NcclFunction.COMM_RESUME);
        communicator.enter(NcclFunction.COMM_RESUME, nccl_h::ncclCommResume);
    }
}
