package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.ffi.nccl.ncclSimInfo_t;
import org.millrace.ffi.nccl.nccl_h;

/**
 * Calls that are issued as one: several ranks' calls of one thread, or sends and receives that must meet. Belongs to
 * the thread that opened it. Groups nest; the outermost one's end issues everything.
 *
 * <p>
 * NCCL has no way to drop a group. If the code between opening and closing throws, what it had enqueued by then is
 * issued all the same: abort the communicators if the other ranks will not do the same.
 */
public final class NcclGroup implements AutoCloseable {

    private final NcclLibrary library;
    private final Thread owner = Thread.currentThread();
    private boolean ended;

    NcclGroup(NcclLibrary library) {
        if (owner.isVirtual()) {
            throw new IllegalStateException(
                    "an NCCL group belongs to an operating system thread, and a virtual thread may change that: call"
                            + " from a platform thread");
        }
        this.library = library;
        library.check(NcclFunction.GROUP_START, nccl_h.ncclGroupStart());
    }

    /**
     * Ends the group without issuing it.
     *
     * @return NCCL's estimate of how long it would take, in microseconds; −1 if it has none
     * @throws NcclException if a call in the group failed
     */
    public float simulate() {
        library.require(NcclFunction.GROUP_SIMULATE_END);
        end();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment info = ncclSimInfo_t.allocate(arena);
            ncclSimInfo_t.size(info, ncclSimInfo_t.layout().byteSize());
            ncclSimInfo_t.magic(info, nccl_h.MILLRACE_NCCL_SIM_INFO_MAGIC());
            ncclSimInfo_t.version(info, nccl_h.NCCL_VERSION_CODE());
            ncclSimInfo_t.estimatedTime(info, nccl_h.NCCL_UNDEF_FLOAT());
            library.check(NcclFunction.GROUP_SIMULATE_END, nccl_h.ncclGroupSimulateEnd(info));
            return ncclSimInfo_t.estimatedTime(info);
        }
    }

    /**
     * Issues what the group holds. Closing twice is allowed.
     *
     * @throws NcclException         if a call in the group failed
     * @throws IllegalStateException on another thread
     */
    @Override
    public void close() {
        if (!ended) {
            end();
            library.check(NcclFunction.GROUP_END, nccl_h.ncclGroupEnd());
        }
    }

    private void end() {
        if (Thread.currentThread() != owner) {
            throw new IllegalStateException("the NCCL group of thread " + owner.getName() + " cannot be ended by "
                    + Thread.currentThread().getName());
        }
        if (ended) {
            throw new IllegalStateException("the NCCL group has ended");
        }
        ended = true;
    }
}
