package org.millrace.device.arithmetic;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.device.arithmetic.Loops.Step;
import org.millrace.element.Elements;

/**
 * Finds the {@link ElementKernel} of a type and an operation. {@linkplain org.millrace.device.arithmetic The package}
 * says what each rounds.
 */
public final class ElementKernels {

    private ElementKernels() {}

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
                        : new BlockwiseKernel(type.bytes(), null, Loops.of(type, Step.ADD), Loops.of(type, Step.DIVIDE),
                                ranks);
            };
        };
    }

    private static ElementKernel plain(DataType type, Step step) {
        return new BlockwiseKernel(type.bytes(), null, Loops.of(type, step), null, 0);
    }

    private static ElementKernel scaled(DataType type, double scalar) {
        return new BlockwiseKernel(type.bytes(), Loops.of(type, Step.SCALE), Loops.of(type, Step.SCALE_ADD), null,
                Elements.bits(type, scalar));
    }

    /** NCCL rounds to binary32 on the way to the narrower types. */
    private static double reciprocal(DataType type, int ranks) {
        double exact = 1.0 / ranks;
        return type == DataType.FLOAT64 ? exact : (float) exact;
    }

    /**
     * Runs an operation's loops over a slice, block by block, so that a second pass finds its data in the first level
     * of the cache.
     *
     * @param pre  what happens to this rank's elements when they are only copied; null for nothing
     * @param op   what joins this rank's elements and the received ones
     * @param post what happens to the last result; null for nothing
     */
    record BlockwiseKernel(int elementBytes, @Nullable Loop pre, Loop op, @Nullable Loop post,
            long scalar) implements ElementKernel {

        @Override
        public boolean hasPreOp() {
            return pre != null;
        }

        @Override
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

        @Override
        public void reduce(MemorySegment input, long inputOffset, MemorySegment received, long receivedOffset,
                MemorySegment destination, long destinationOffset, long count, boolean last) {
            long bytes = bytes(count);
            Objects.checkFromIndexSize(inputOffset, bytes, input.byteSize());
            Objects.checkFromIndexSize(receivedOffset, bytes, received.byteSize());
            Objects.checkFromIndexSize(destinationOffset, bytes, destination.byteSize());
            @Nullable
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
}
