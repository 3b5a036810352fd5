package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.DataType;
import org.millrace.cuda.DeviceSegments;
import org.millrace.element.Elements;
import org.millrace.ffi.nccl.nccl_h;

/**
 * A reduction that belongs to one communicator. Each rank's elements are multiplied by the scalar of that rank, and the
 * products are summed.
 */
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

    static NcclReduction of(NcclCommunicator communicator, double scalar, DataType type) {
        try (Arena arena = Arena.ofConfined()) {
            return of(communicator, scalar(scalar, type, arena), type, false);
        }
    }

    /** {@return the element type of the reduction; operations of other types cannot use it} */
    public DataType type() {
        return type;
    }

    /**
     * Returns NCCL's number of this reduction, for a call on the reduction's communicator. Throws if the caller is
     * another communicator or the operands have another type.
     */
    int code(NcclCommunicator caller, DataType operands) {
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

    /**
     * Destroys the reduction. Operations that were enqueued before this call still use the reduction. May be called
     * twice.
     */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            communicator.release(NcclFunction.RED_OP_DESTROY, this::destroy);
        }
    }

    private int destroy(MemorySegment handle) {
        return nccl_h.ncclRedOpDestroy(code, handle);
    }

    /**
     * Returns memory that contains one number, in the representation of an element type. Floats are rounded to nearest,
     * ties to even. As in CUDA, a float that is too large becomes infinity, or the largest number if the type has 8
     * bits. Integers are truncated towards zero and clamped to the range of the type.
     */
    static MemorySegment scalar(double value, DataType type, SegmentAllocator allocator) {
        MemorySegment scalar = allocator.allocate(Long.BYTES, Long.BYTES);
        Elements.setBits(type, scalar, 0, switch (type) {
            case INT8 -> Math.clamp((long) value, Byte.MIN_VALUE, Byte.MAX_VALUE);
            case UINT8 -> Math.clamp((long) value, 0, 0xff);
            case INT32 -> (int) value;
            case UINT32 -> Math.clamp((long) value, 0L, 0xffff_ffffL);
            case INT64 -> (long) value;
            case UINT64 -> unsignedLong(value);
            case FLOAT16, FLOAT32, FLOAT64, BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2 -> Elements.bits(type, value);
        });
        return scalar;
    }

    private static long unsignedLong(double value) {
        double half = 0x1p63;
        if (!(value > 0)) {
            return 0;
        }
        return value < half ? (long) value : value >= 2 * half ? -1L : (long) (value - half) | Long.MIN_VALUE;
    }
}
