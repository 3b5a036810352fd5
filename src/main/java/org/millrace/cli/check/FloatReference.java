package org.millrace.cli.check;

import java.lang.foreign.MemorySegment;

/**
 * Floating-point numbers: computed in double precision, and compared with what rounding to the type after every step
 * allows. The order in which a collective combines ranks is its own business, so that results may differ by as much.
 */
final class FloatReference implements Reference {

    private static final double DOUBLE_ROUNDOFF = 0x1p-53;

    private final FloatFormat format;
    private final int fractionBits;

    FloatReference(FloatFormat format) {
        this.format = format;
        fractionBits = -Math.getExponent(format.roundoff()) - 1;
    }

    @Override
    public void fill(MemorySegment memory, RandomOperands operands, Reduction reduction, int rank, int ranks,
            long first, long count) {
        for (long i = 0; i < count; i++) {
            format.set(memory, i, value(operands, rank, first + i));
        }
    }

    @Override
    public long countWrong(MemorySegment memory, RandomOperands operands, Reduction reduction, int ranks, long first,
            long count) {
        int roundings = roundings(reduction, ranks);
        double relative =
                roundings == 0 ? 0 : Math.expm1(roundings * Math.log1p(format.roundoff())) + ranks * DOUBLE_ROUNDOFF;
        double absolute = roundings * format.smallest();
        long wrong = 0;
        for (long i = 0; i < count; i++) {
            if (!isRight(format.get(memory, i), operands, reduction, ranks, first + i, relative, absolute)) {
                wrong++;
            }
        }
        return wrong;
    }

    /**
     * Exact in this type: all its fraction bits are random. Even ranks' numbers are from 1 to 2 and odd ranks' from ½
     * to 1, so that products stay near 1; half of all are negative.
     */
    private double value(RandomOperands operands, int rank, long index) {
        long bits = operands.bits(rank, index);
        double magnitude =
                Math.scalb(1.0 + Math.scalb((double) (bits >>> Long.SIZE - fractionBits), -fractionBits), -(rank & 1));
        return (bits & 1) == 0 ? magnitude : -magnitude;
    }

    /** How often a result may have been rounded to the type on its way. */
    private static int roundings(Reduction reduction, int ranks) {
        return switch (reduction) {
            case MAX, MIN -> 0;
            case SUM, PROD -> ranks - 1;
            case MULSUM -> 2 * ranks - 1;
            // 1/ranks is rounded too
            case AVG -> 2 * ranks;
        };
    }

    /**
     * Compares one element.
     *
     * @param relative the largest error in units of the magnitudes that were combined: (1 + u)^n - 1 for n roundings,
     *                 and the reference's own
     * @param absolute the largest error where numbers are too small for the relative one
     */
    private boolean isRight(double actual, RandomOperands operands, Reduction reduction, int ranks, long index,
            double relative, double absolute) {
        double expected = value(operands, 0, index);
        if (reduction == Reduction.MULSUM) {
            expected *= Reduction.factor(0);
        }
        double magnitude = Math.abs(expected);
        for (int rank = 1; rank < ranks; rank++) {
            double value = value(operands, rank, index);
            switch (reduction) {
                case SUM, AVG -> expected += value;
                case MULSUM -> {
                    value *= Reduction.factor(rank);
                    expected += value;
                }
                case PROD -> expected *= value;
                case MAX -> expected = Math.max(expected, value);
                case MIN -> expected = Math.min(expected, value);
            }
            magnitude = reduction == Reduction.PROD ? Math.abs(expected) : magnitude + Math.abs(value);
        }
        if (reduction == Reduction.AVG) {
            expected /= ranks;
            magnitude /= ranks;
        }
        return Math.abs(actual - expected) <= relative * magnitude + absolute; // false for NaN
    }
}
