package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.cuda.DeviceSegments;
import org.millrace.ffi.nccl.nccl_h;

/** Device memory that a communicator may use in place until this is closed. */
public final class NcclRegistration implements AutoCloseable {

    private final NcclCommunicator communicator;
    private final MemorySegment registration;
    private final AtomicBoolean closed = new AtomicBoolean();

    NcclRegistration(NcclCommunicator communicator, MemorySegment registration) {
        this.communicator = communicator;
        this.registration = registration;
    }

    static NcclRegistration of(NcclCommunicator communicator, MemorySegment memory) {
        communicator.library.require(NcclFunction.COMM_REGISTER);
        MemorySegment address = DeviceSegments.pointer("memory to register", memory, 0);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            communicator.enter(NcclFunction.COMM_REGISTER,
                    handle -> nccl_h.ncclCommRegister(handle, address, memory.byteSize(), out));
            return new NcclRegistration(communicator, out.get(ValueLayout.ADDRESS, 0));
        }
    }

    /** Takes the registration back; nothing to do if the communicator is closed already. Closing twice is allowed. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            communicator.release(NcclFunction.COMM_DEREGISTER,
                    handle -> nccl_h.ncclCommDeregister(handle, registration));
        }
    }
}
