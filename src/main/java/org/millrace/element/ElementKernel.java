package org.millrace.element;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.element.Loops.Step;

/**
 * The arithmetic of one element type and one operation. A kernel computes the same results as NCCL's device code, which
 * computes them while it moves the elements of a slice. Immutable, stateless, and shared by threads. No call allocates.
 *
 * <p>
 * A reduction over ranks consists of {@code copy} on the first rank and {@code reduce} on every later rank. The
 * argument {@code last} is true on the last rank. A group of one rank uses only {@code copy}. The
 * {@linkplain org.millrace.element package} describes the computation of each operation.
 *
 * <p>
 * Offsets are bytes and counts are elements. Memory may be on the heap or native. Offsets need not be multiples of the
 * element size. A destination may be identical to the memory of an operand, but must not overlap it in any other way.
 * Every method throws {@link IndexOutOfBoundsException} before it writes anything, if a range lies outside its segment
 * or {@code count} is negative.
 *
 * @param elementBytes size of an element in bytes
 * @param pre          loop for elements of this rank that are copied and not reduced; null if a copy leaves the
 *                     elements unchanged
 * @param op           loop that combines this rank's elements with the received elements
 * @param post         loop for the result of the last rank; null if that result stays unchanged
 * @param scalar       scalar argument of the loops: the bits of an element, or a number of ranks
 */
public record ElementKernel(int elementBytes, @Nullable Loop pre, Loop op, @Nullable Loop post, long scalar) {

    /**
     * Returns a kernel. Kernels share their loops, so that repeated calls are cheap.
     *
     * @param ranks number of ranks of an average
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
     * Returns the kernel for a result that several ranks compute independently. All ranks get the same bits. If the
     * type has several NaNs, the kernel replaces each resulting NaN by one fixed NaN. Without this replacement, two
     * processors could select different NaNs if both operands are NaNs.
     *
     * @param op an operation whose result for one rank is that rank's own elements
     */
    public static ElementKernel alike(DataType type, ReduceOp.BuiltIn op) {
        ElementKernel kernel = of(type, op, 1);
        boolean manyNans = type.isFloating() && type.bytes() > 1;
        return manyNans ? new ElementKernel(type.bytes(), null, kernel.op, Loops.of(type, Step.ONE_NAN), 0) : kernel;
    }

    /** Returns this kernel if {@code onHeap} is false, otherwise a kernel that is fast with memory on the heap. */
    public ElementKernel staged(boolean onHeap) {
        return onHeap ? new ElementKernel(elementBytes, staged(pre), staged(op), staged(post), scalar) : this;
    }

    private @Nullable Loop staged(@Nullable Loop loop) {
        return loop == null ? null : new HeapLoop(loop, elementBytes);
    }

    private static ElementKernel plain(DataType type, Step step) {
        return new ElementKernel(type.bytes(), null, Loops.of(type, step), null, 0);
    }

    private static ElementKernel scaled(DataType type, double scalar) {
        return new ElementKernel(type.bytes(), Loops.of(type, Step.SCALE), Loops.of(type, Step.SCALE_ADD), null,
                Elements.bits(type, scalar));
    }

    /** Returns 1 / ranks as NCCL computes it: rounded to binary32 first, and then to a narrower type. */
    private static double reciprocal(DataType type, int ranks) {
        double exact = 1.0 / ranks;
        return type == DataType.FLOAT64 ? exact : (float) exact;
    }

    /**
     * Returns whether {@link #copy} changes elements. An operation changes elements if it multiplies them before it
     * adds them. If {@link #copy} changes no elements, callers may copy the bytes in any other way.
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
     * Continues a reduction: {@code destination[i] = op(input[i], received[i])}, or {@code post} of this result.
     *
     * @param received combined elements of the ranks before this rank
     * @param last     whether this rank is the last one. {@code post} is then applied to the result. {@code post}
     *                 divides the sum for an integer average, or replaces NaNs in a result that several ranks compute.
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

    /**
     * Runs a loop on copies of its operands in native memory of this thread. If a loop received native memory and
     * arrays of several types, HotSpot could no longer compile the loop for one type. The loop would then become slower
     * for all callers. The copies stay in the first-level cache.
     */
    private record HeapLoop(Loop loop, int elementBytes) implements Loop {

        private static final ThreadLocal<MemorySegment> STAGE =
                ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(2 * BLOCK_BYTES, Long.BYTES));

        @Override
        public void run(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at, int count,
                long scalar) {
            MemorySegment stage = STAGE.get();
            long bytes = (long) count * elementBytes;
            MemorySegment.copy(x, xAt, stage, 0, bytes);
            if (!y.isNative()) {
                MemorySegment.copy(y, yAt, stage, BLOCK_BYTES, bytes);
            }
            loop.run(stage, 0, y.isNative() ? y : stage, y.isNative() ? yAt : BLOCK_BYTES, stage, 0, count, scalar);
            MemorySegment.copy(stage, 0, out, at, bytes);
        }
    }
}
