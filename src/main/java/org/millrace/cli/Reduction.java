package org.millrace.cli;

import java.util.Locale;
import org.millrace.ReduceOp;

/** The reductions that can be measured, by the names of nccl-tests. */
enum Reduction {
    SUM,
    PROD,
    MAX,
    MIN,
    AVG,
    /** A sum of elements that each rank multiplies by a factor of its own first. */
    MULSUM;

    /** What a rank hands to the collective. */
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

    /** What {@link #MULSUM} multiplies a rank's elements by: exact in every type. */
    static int factor(int rank) {
        return 2 + rank % 2;
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
