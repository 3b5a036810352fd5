package org.millrace.nccl;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.handle.NativeHandle;

/**
 * A communicator's operations: those that combine all ranks' elements, and those of {@link NcclTransfers}, whose rules
 * hold here too. Only {@link ReduceOp.PreMulSum} costs an allocation: it is made for the call and taken back after it.
 */
public abstract sealed class NcclCollectives extends NcclTransfers permits NcclCommunicator {

    NcclCollectives(NcclLibrary library, CudaDevice device, NativeHandle handle, int size, int rank,
            boolean nonBlocking) {
        super(library, device, handle, size, rank, nonBlocking);
    }

    /**
     * {@return a new reduction that multiplies this rank's elements by a scalar and sums them}
     *
     * @param scalar the factor, rounded to the type; to nearest, ties to even, for floats, towards zero for integers
     */
    public abstract NcclReduction scaledSum(double scalar, DataType type);

    /** The reduction that has to be made for a call, if there is one. */
    private @Nullable NcclReduction scaled(ReduceOp op, DataType type) {
        return op instanceof ReduceOp.PreMulSum(double scalar) ? scaledSum(scalar, type) : null;
    }

    private int code(ReduceOp op, @Nullable NcclReduction scaled) {
        return op instanceof ReduceOp.BuiltIn builtIn ? builtIn.code() : scaled.code(this, scaled.type());
    }

    /**
     * Reduces all ranks' elements and leaves the result with every rank.
     *
     * @param send    {@code count} elements
     * @param receive {@code count} elements; the same memory for an operation in place
     */
    public final void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            CudaStream stream) {
        try (NcclReduction scaled = scaled(op, type)) {
            allReduce(send, receive, count, type, code(op, scaled), stream);
        }
    }

    /**
     * Reduces all ranks' elements by a reduction of this communicator and leaves the result with every rank.
     *
     * @param send    {@code count} elements
     * @param receive {@code count} elements; the same memory for an operation in place
     */
    public final void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type,
            NcclReduction reduction, CudaStream stream) {
        allReduce(send, receive, count, type, reduction.code(this, type), stream);
    }

    private void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, int op,
            CudaStream stream) {
        long bytes = bytes(count, 1, type);
        long from = DeviceSegments.address("send", send, bytes);
        long to = DeviceSegments.address("receive", receive, bytes);
        MemorySegment communicator = enter(stream);
        try {
            settle(NcclFunction.ALL_REDUCE, communicator, CollectiveCalls.allReduce(from, to, count, type.code(), op,
                    communicator.address(), stream.handle().address().address()));
        } finally {
            exit(stream);
        }
    }

    /**
     * Reduces all ranks' elements and leaves the result with one of them.
     *
     * @param send    {@code count} elements
     * @param receive {@code count} elements at the root, or the same memory as {@code send}; may be null elsewhere
     */
    public final void reduce(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type,
            ReduceOp op, int root, CudaStream stream) {
        try (NcclReduction scaled = scaled(op, type)) {
            reduce(send, receive, count, type, code(op, scaled), root, stream);
        }
    }

    /**
     * Reduces all ranks' elements by a reduction of this communicator and leaves the result with one of them.
     *
     * @param send    {@code count} elements
     * @param receive {@code count} elements at the root, or the same memory as {@code send}; may be null elsewhere
     */
    public final void reduce(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type,
            NcclReduction reduction, int root, CudaStream stream) {
        reduce(send, receive, count, type, reduction.code(this, type), root, stream);
    }

    private void reduce(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, int op,
            int root, CudaStream stream) {
        long bytes = bytes(count, 1, type);
        long from = DeviceSegments.address("send", send, bytes);
        long to = optional("receive", receive, bytes, root);
        MemorySegment communicator = enter(stream);
        try {
            settle(NcclFunction.REDUCE, communicator, CollectiveCalls.reduce(from, to, count, type.code(), op, root,
                    communicator.address(), stream.handle().address().address()));
        } finally {
            exit(stream);
        }
    }

    /**
     * Reduces all ranks' elements and leaves each rank its share of the result.
     *
     * @param send    {@code size() * count} elements
     * @param receive {@code count} elements; for an operation in place, {@code send}'s part number {@code rank()}
     * @param count   number of elements that each rank gets
     */
    public final void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            CudaStream stream) {
        try (NcclReduction scaled = scaled(op, type)) {
            reduceScatter(send, receive, count, type, code(op, scaled), stream);
        }
    }

    /**
     * Reduces all ranks' elements by a reduction of this communicator and leaves each rank its share of the result.
     *
     * @param send    {@code size() * count} elements
     * @param receive {@code count} elements; for an operation in place, {@code send}'s part number {@code rank()}
     * @param count   number of elements that each rank gets
     */
    public final void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type,
            NcclReduction reduction, CudaStream stream) {
        reduceScatter(send, receive, count, type, reduction.code(this, type), stream);
    }

    private void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, int op,
            CudaStream stream) {
        long from = DeviceSegments.address("send", send, bytes(count, size(), type));
        long to = DeviceSegments.address("receive", receive, bytes(count, 1, type));
        MemorySegment communicator = enter(stream);
        try {
            settle(NcclFunction.REDUCE_SCATTER, communicator, CollectiveCalls.reduceScatter(from, to, count,
                    type.code(), op, communicator.address(), stream.handle().address().address()));
        } finally {
            exit(stream);
        }
    }
}
