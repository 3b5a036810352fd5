package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.ffi.nccl.ncclSimInfo_t;
import org.millrace.ffi.nccl.nccl_h;

/**
 * A group of calls that NCCL issues together. A group is necessary if a thread calls NCCL for several ranks, or if
 * sends and receives depend on each other. A group belongs to the thread that opened it. Groups can be nested. The end
 * of the outermost group issues all calls.
 *
 * <p>
 * {@link #close} issues the group's calls even after an exception. If the code between opening and closing throws an
 * exception, the calls before the exception are therefore issued. If the other ranks do not make the same calls, the
 * program must abort the communicators. Only {@link #simulate} ends a group without issuing its calls.
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
     * Ends the group without issuing its calls.
     *
     * @return NCCL's estimate of the duration of the group's operations, in microseconds; −1 if NCCL has no estimate
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
     * Issues the group's calls. May be called twice.
     *
     * @throws NcclException         if a call in the group failed
     * @throws IllegalStateException if another thread opened the group
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
