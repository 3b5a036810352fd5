package org.millrace.element;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.element.Loops.Step;

/**
 * The arithmetic of one element type and one operation: what NCCL's kernels do to the elements of a slice while they
 * move it. Immutable, without state, shared by threads. No call allocates.
 *
 * <p>
 * With <i>pre</i>, <i>op</i> and <i>post</i> as {@linkplain org.millrace.element the package} defines them, a reduction
 * over ranks is {@code copy} on the rank where it starts, {@code reduce} on every rank after it, with {@code last} on
 * the one where it ends. A group of one rank is {@code copy} alone.
 *
 * <p>
 * Offsets are bytes and counts are elements. Memory may be on the heap or native and offsets need not be multiples of
 * the element size. A destination may be the very memory that an operand is read from, but must not overlap it in any
 * other way. Every method throws {@link IndexOutOfBoundsException} when a range lies outside its segment or
 * {@code count} is negative, before anything is written.
 *
 * @param pre  what happens to this rank's elements when they are only copied; null for nothing
 * @param op   what joins this rank's elements and the received ones
 * @param post what happens to the last result; null for nothing
 */
public record ElementKernel(int elementBytes, @Nullable Loop pre, Loop op, @Nullable Loop post, long scalar) {

    /**
     * Finds a kernel. What it is made of is shared, so that asking again is cheap.
     *
     * @param ranks how many an average is over
     * @throws IllegalArgumentException if {@code ranks} is not positive, or a {@link ReduceOp.PreMulSum} multiplies
     *                                  integers by what is not one of them
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
     * The kernel of a result that several ranks compute, each for itself: all get the same bits, whichever of two NaNs
     * their processors take.
     *
     * @param op none that does something to one rank's elements alone
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

    /** NCCL rounds to binary32 on the way to the narrower types. */
    private static double reciprocal(DataType type, int ranks) {
        double exact = 1.0 / ranks;
        return type == DataType.FLOAT64 ? exact : (float) exact;
    }

    /**
     * Whether {@link #copy} changes elements, as an operation does that multiplies before it adds. Where it does not,
     * callers can move bytes by any means they like.
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
     * Continues a reduction: {@code destination[i] = op(pre(input[i]), received[i])}, or {@code post} of that.
     *
     * @param received what the ranks before this one made of their elements
     * @param last     whether every rank has contributed now, so that the operation's end (the division of an integer
     *                 average, the one NaN of what several ranks compute) is due
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
