package org.millrace.cli.perf;

import java.util.Locale;
import org.millrace.ReduceOp;

/** Reductions that can be measured, with their names in nccl-tests. */
public enum Reduction {
    SUM,
    PROD,
    MAX,
    MIN,
    AVG,
    /** A sum of elements. Each rank first multiplies its elements by a factor that depends on the rank number. */
    MULSUM;

    /** Returns the operator that a rank passes to the collective. */
    ReduceOp operation(int rank) {
        return switch (this) {
            case SUM -> ReduceOp.SUM;
            case PROD -> ReduceOp.PROD;
            case MAX -> ReduceOp.MAX;
            case MIN -> ReduceOp.MIN;
            case AVG -> ReduceOp.AVG;
            case MULSUM -> new ReduceOp.PreMulSum(factor(rank));
        };
    }

    /** Returns the factor of a rank's elements for {@link #MULSUM}. The product is exact in every type. */
    static int factor(int rank) {
        return 2 + rank % 2;
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
