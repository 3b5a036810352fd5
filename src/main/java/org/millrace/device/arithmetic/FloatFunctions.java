package org.millrace.device.arithmetic;

import org.millrace.DataType;
import org.millrace.element.Rounding;

/**
 * Sums and products of the floats with 16, 32 and 64 bits. The 16-bit types are computed in binary32: its 24 bits of
 * precision are at least twice theirs and two more, so that a sum or a product rounded to 24 bits and then to 11 or 8
 * is what rounding it once gives (Figueroa, "When is double rounding innocuous?", 1995). A product and a sum together
 * are not: see {@link Rounding#scaleAdd}.
 */
final class FloatFunctions {

    private FloatFunctions() {}

    static ElementFunction.OfFloat ofFloat(Step step, DataType type) {
        return switch (step) {
            case ADD -> (x, y, s) -> x + y;
            case MULTIPLY -> (x, y, s) -> x * y;
            case SCALE -> (x, y, s) -> x * s;
            case SCALE_ADD -> switch (type) {
                case FLOAT16 -> (x, y, s) -> Rounding.scaleAdd(x, s, y, 13, 0x1p-14f);
                case BFLOAT16 -> (x, y, s) -> Rounding.scaleAdd(x, s, y, 16, 0x1p-125f);
                default -> (x, y, s) -> Math.fma(x, s, y);
            };
            case MINIMUM, MAXIMUM, DIVIDE ->
                throw new IllegalArgumentException(step + " of " + type + " is not computed as a float");
        };
    }

    static ElementFunction.OfDouble ofDouble(Step step) {
        return switch (step) {
            case ADD -> (x, y, s) -> x + y;
            case MULTIPLY -> (x, y, s) -> x * y;
            case SCALE -> (x, y, s) -> x * s;
            case SCALE_ADD -> (x, y, s) -> Math.fma(x, s, y);
            case MINIMUM, MAXIMUM, DIVIDE ->
                throw new IllegalArgumentException(step + " of FLOAT64 is not computed as a double");
        };
    }
}
