package org.millrace;

/**
 * Reduction of a collective: one of NCCL's {@linkplain BuiltIn five operations}, or a sum of elements that are each
 * multiplied by a scalar first.
 */
public sealed interface ReduceOp {

    /** Sum of all ranks' elements. */
    ReduceOp SUM = BuiltIn.SUM;
    /** Product of all ranks' elements. */
    ReduceOp PROD = BuiltIn.PROD;
    /** Largest element. */
    ReduceOp MAX = BuiltIn.MAX;
    /** Smallest element. */
    ReduceOp MIN = BuiltIn.MIN;
    /** Sum divided by the number of ranks; integers are rounded towards zero. */
    ReduceOp AVG = BuiltIn.AVG;

    /** {@return the name that nccl-tests prints and accepts, for instance {@code "sum"}} */
    String label();

    /** The operations that need no parameter; their ordinals are the values of {@code ncclRedOp_t}. */
    enum BuiltIn implements ReduceOp {
        /** See {@link ReduceOp#SUM}. */
        SUM("sum"),
        /** See {@link ReduceOp#PROD}. */
        PROD("prod"),
        /** See {@link ReduceOp#MAX}. */
        MAX("max"),
        /** See {@link ReduceOp#MIN}. */
        MIN("min"),
        /** See {@link ReduceOp#AVG}. */
        AVG("avg");

        private final String label;

        BuiltIn(String label) {
            this.label = label;
        }

        /** {@return the operation's value of {@code ncclRedOp_t}: 0 to 4} */
        public int code() {
            return ordinal();
        }

        @Override
        public String label() {
            return label;
        }
    }

    /**
     * Sum of elements that each rank first multiplies by its own scalar ({@code ncclRedOpCreatePreMulSum}).
     *
     * @param scalar the factor of this rank, converted to the element type of the operation
     */
    record PreMulSum(double scalar) implements ReduceOp {
        @Override
        public String label() {
            return "mulsum";
        }
    }
}
