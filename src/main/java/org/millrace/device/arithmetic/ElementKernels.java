package org.millrace.device.arithmetic;

import org.millrace.DataType;
import org.millrace.ReduceOp;
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
}
