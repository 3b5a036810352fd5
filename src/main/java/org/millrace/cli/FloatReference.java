package org.millrace.cli;

/**
 * Floating-point numbers: computed in double precision, and compared with what rounding to the type after every step
 * allows. The order in which a collective combines ranks is its own business, so that results may differ by as much.
 */
final class FloatReference extends Reference {

    private static final double DOUBLE_ROUNDOFF = 0x1p-53;

    private final FloatFormat format;
    private final Reduction reduction;
    private final int ranks;
    private final RandomOperands operands;
    private final int fractionBits;
    /**
     * The largest error in units of the magnitudes that were combined: (1 + u)^n - 1 for n roundings, and the
     * reference's own.
     */
    private final double relative;
    /** The largest error where numbers are too small for the relative one. */
    private final double absolute;

    FloatReference(FloatFormat format, Reduction reduction, int ranks, RandomOperands operands) {
        super(format.bytes());
        this.format = format;
        this.reduction = reduction;
        this.ranks = ranks;
        this.operands = operands;
        fractionBits = -Math.getExponent(format.roundoff()) - 1;
        int roundings = roundings();
        relative = roundings == 0 ? 0 : Math.expm1(roundings * Math.log1p(format.roundoff())) + ranks * DOUBLE_ROUNDOFF;
        absolute = roundings * format.smallest();
    }

    /** How often a result may have been rounded to the type on its way. */
    private int roundings() {
        return switch (reduction) {
            case MAX, MIN -> 0;
            case SUM, PROD -> ranks - 1;
            case MULSUM -> 2 * ranks - 1;
            // 1/ranks is rounded too
            case AVG -> 2 * ranks;
        };
    }

    @Override
    long element(int rank, long index) {
        return format.encode(value(rank, index));
    }

    @Override
    boolean isRight(long bits, long index) {
        return isRight(format.decode(bits), index);
    }

    /**
     * Exact in this type: all its fraction bits are random. Even ranks' numbers are from 1 to 2 and odd ranks' from ½
     * to 1, so that products stay near 1; half of all are negative.
     */
    private double value(int rank, long index) {
        long bits = operands.bits(rank, index);
        double magnitude =
                Math.scalb(1.0 + Math.scalb((double) (bits >>> Long.SIZE - fractionBits), -fractionBits), -(rank & 1));
        return (bits & 1) == 0 ? magnitude : -magnitude;
    }

    private boolean isRight(double actual, long index) {
        double expected = value(0, index);
        if (reduction == Reduction.MULSUM) {
            expected *= Reduction.factor(0);
        }
        double magnitude = Math.abs(expected);
        for (int rank = 1; rank < ranks; rank++) {
            double value = value(rank, index);
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
