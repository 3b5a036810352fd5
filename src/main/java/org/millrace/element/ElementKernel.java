package org.millrace.element;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.element.Loops.Step;

/**
 * The arithmetic of one element type and one operation. It does what NCCL's kernels do to the elements of a slice while
 * they move it. Immutable, stateless, and shared by threads. No call allocates.
 *
 * <p>
 * <i>Pre</i>, <i>op</i> and <i>post</i> are defined by {@linkplain org.millrace.element the package}. A reduction over
 * ranks is {@code copy} on the first rank and {@code reduce} on every later rank, with {@code last} on the last one. A
 * group of one rank uses only {@code copy}.
 *
 * <p>
 * Offsets are bytes and counts are elements. Memory may be on the heap or native. Offsets need not be multiples of the
 * element size. A destination may be identical to the memory of an operand, but must not overlap it in any other way.
 * Every method throws {@link IndexOutOfBoundsException} before it writes anything, if a range lies outside its segment
 * or {@code count} is negative.
 *
 * @param pre  operation on this rank's elements when they are only copied; null for none
 * @param op   operation that combines this rank's elements with the received elements
 * @param post operation on the last result; null for none
 */
public record ElementKernel(int elementBytes, @Nullable Loop pre, Loop op, @Nullable Loop post, long scalar) {

    /**
     * Returns a kernel. Its parts are shared, so repeated calls are cheap.
     *
     * @param ranks number of ranks that an average is computed over
     * @throws IllegalArgumentException if {@code ranks} is not positive, or a {@link ReduceOp.PreMulSum} multiplies
     *                                  integers by a value that the type does not have
     */
    public static ElementKernel of(DataType type, ReduceOp op, int ranks) {
        if (ranks < 1) {
            throw new IllegalArgumentException(
                    "a reduction over " + ranks + " ranks: give the number of ranks of the communicator, 1 or more");
        }
        return switch (op) {
            case ReduceOp.PreMulSum(double scalar) -> scaled(type, scalar);
            case ReduceOp.BuiltIn builtIn -> switch (builtIn) {
                case SUM -> plain(type, Step.ADD);
                case PROD -> plain(type, Step.MULTIPLY);
                case MAX -> plain(type, Step.MAXIMUM);
                case MIN -> plain(type, Step.MINIMUM);
                case AVG -> type.isFloating() ? scaled(type, reciprocal(type, ranks))
                        : new ElementKernel(type.bytes(), null, Loops.of(type, Step.ADD), Loops.of(type, Step.DIVIDE),
                                ranks);
            };
        };
    }

    /**
     * Returns the kernel for a result that several ranks compute independently. All ranks get the same bits, even if
     * their processors choose different ones of two NaNs.
     *
     * @param op an operation that does not change the elements of a single rank
     */
    public static ElementKernel alike(DataType type, ReduceOp.BuiltIn op) {
        ElementKernel kernel = of(type, op, 1);
        boolean manyNans = type.isFloating() && type.bytes() > 1;
        return manyNans ? new ElementKernel(type.bytes(), null, kernel.op, Loops.of(type, Step.ONE_NAN), 0) : kernel;
    }

    private static ElementKernel plain(DataType type, Step step) {
        return new ElementKernel(type.bytes(), null, Loops.of(type, step), null, 0);
    }

    private static ElementKernel scaled(DataType type, double scalar) {
        return new ElementKernel(type.bytes(), Loops.of(type, Step.SCALE), Loops.of(type, Step.SCALE_ADD), null,
                Elements.bits(type, scalar));
    }

    /** Returns 1 / ranks as NCCL computes it: NCCL rounds to binary32 before it rounds to the narrower types. */
    private static double reciprocal(DataType type, int ranks) {
        double exact = 1.0 / ranks;
        return type == DataType.FLOAT64 ? exact : (float) exact;
    }

    /**
     * Returns whether {@link #copy} changes elements, as an operation does that multiplies before it adds. If it does
     * not, callers may copy the bytes by any other means.
     */
    public boolean hasPreOp() {
        return pre != null;
    }

    /** Starts a reduction: {@code destination[i] = pre(input[i])}. */
    public void copy(MemorySegment input, long inputOffset, MemorySegment destination, long destinationOffset,
            long count) {
        long bytes = bytes(count);
        Objects.checkFromIndexSize(inputOffset, bytes, input.byteSize());
        Objects.checkFromIndexSize(destinationOffset, bytes, destination.byteSize());
        if (pre == null) {
            MemorySegment.copy(input, inputOffset, destination, destinationOffset, bytes);
            return;
        }
        for (long done = 0; done < bytes; done += Loop.BLOCK_BYTES) {
            long from = inputOffset + done;
            pre.run(input, from, input, from, destination, destinationOffset + done, block(bytes - done), scalar);
        }
    }

    /**
     * Continues a reduction: {@code destination[i] = op(pre(input[i]), received[i])}, or {@code post} of that value.
     *
     * @param received combined elements of the ranks before this one
     * @param last     whether every rank has contributed now, so that {@code post} is applied. It divides an integer
     *                 average, or replaces NaNs in a result that several ranks compute.
     */
    public void reduce(MemorySegment input, long inputOffset, MemorySegment received, long receivedOffset,
            MemorySegment destination, long destinationOffset, long count, boolean last) {
        long bytes = bytes(count);
        Objects.checkFromIndexSize(inputOffset, bytes, input.byteSize());
        Objects.checkFromIndexSize(receivedOffset, bytes, received.byteSize());
        Objects.checkFromIndexSize(destinationOffset, bytes, destination.byteSize());
        Loop end = last ? post : null;
        for (long done = 0; done < bytes; done += Loop.BLOCK_BYTES) {
            int elements = block(bytes - done);
            long to = destinationOffset + done;
            op.run(input, inputOffset + done, received, receivedOffset + done, destination, to, elements, scalar);
            if (end != null) {
                end.run(destination, to, destination, to, destination, to, elements, scalar);
            }
        }
    }

    private long bytes(long count) {
        return Objects.checkFromIndexSize(0, count, Long.MAX_VALUE / elementBytes) + count * elementBytes;
    }

    private int block(long bytesLeft) {
        return (int) Math.min(bytesLeft, Loop.BLOCK_BYTES) / elementBytes;
    }
}
