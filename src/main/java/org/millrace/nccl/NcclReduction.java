package org.millrace.nccl;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.DataType;
import org.millrace.cuda.DeviceSegments;
import org.millrace.ffi.nccl.nccl_h;

/** A reduction of one communicator's own: the sum of elements that are each multiplied by this rank's scalar first. */
public final class NcclReduction implements AutoCloseable {

    private final NcclCommunicator communicator;
    private final DataType type;
    private final int code;
    private final AtomicBoolean closed = new AtomicBoolean();

    NcclReduction(NcclCommunicator communicator, DataType type, int code) {
        this.communicator = communicator;
        this.type = type;
        this.code = code;
    }

    static NcclReduction of(NcclCommunicator communicator, MemorySegment scalar, DataType type, boolean onDevice) {
        communicator.library.require(NcclFunction.RED_OP_CREATE_PRE_MUL_SUM);
        MemorySegment address = DeviceSegments.pointer("scalar", scalar, type.bytes());
        int residence = onDevice ? nccl_h.ncclScalarDevice() : nccl_h.ncclScalarHostImmediate();
        return new NcclReduction(communicator, type, communicator.query(NcclFunction.RED_OP_CREATE_PRE_MUL_SUM,
                (handle, out) -> nccl_h.ncclRedOpCreatePreMulSum(out, address, type.code(), residence, handle)));
    }

    /**
     * The element type it was made for, and the only one it works with.
     *
     * @return the type
     */
    public DataType type() {
        return type;
    }

    /** The value that stands for it in a call of its communicator. */
    int code(NcclCollectives caller, DataType operands) {
        if (caller != communicator) {
            throw new IllegalArgumentException(
                    "the reduction was made for " + communicator + " and cannot be used with " + caller);
        }
        if (operands != type) {
            throw new IllegalArgumentException(
                    "the reduction was made for " + type.label() + " and cannot reduce " + operands.label());
        }
        if (closed.get()) {
            throw new IllegalStateException("the reduction of " + communicator + " is closed");
        }
        return code;
    }

    /** Gives it back. Operations that were enqueued with it still use it. Closing twice is allowed. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            communicator.release(NcclFunction.RED_OP_DESTROY, this::destroy);
        }
    }

    private int destroy(MemorySegment handle) {
        return nccl_h.ncclRedOpDestroy(code, handle);
    }
}
