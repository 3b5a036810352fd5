package org.millrace.device.arithmetic;

import org.millrace.element.Float8;

/**
 * Arithmetic of 8-bit floats, from tables of all 65,536 results. NCCL converts both operands to binary16, which is
 * exact, computes and rounds there, and rounds the result again to 8 bits.
 */
final class Float8Functions {

    private final Float8 format;

    Float8Functions(Float8 format) {
        this.format = format;
    }

    /** A binary operation on floats. */
    @FunctionalInterface
    private interface Operation {
        float apply(float x, float y);
    }

    ElementFunction.OfInt ofInt(Step step) {
        return switch (step) {
            case ADD -> lookUp(table(Float::sum));
            case MULTIPLY -> lookUp(table((x, y) -> x * y));
            case MINIMUM -> lookUp(table((x, y) -> Float.isNaN(x) ? y : Float.isNaN(y) ? x : Math.min(x, y)));
            case MAXIMUM -> lookUp(table((x, y) -> Float.isNaN(x) ? y : Float.isNaN(y) ? x : Math.max(x, y)));
            case SCALE -> {
                byte[] products = table((x, y) -> x * y);
                yield (x, y, s) -> products[index(x, s)];
            }
            case SCALE_ADD -> {
                byte[] products = table((x, y) -> x * y);
                byte[] sums = table(Float::sum);
                yield (x, y, s) -> sums[index(products[index(x, s)], y)];
            }
            case DIVIDE -> throw new IllegalArgumentException("only integers are divided, not " + format);
        };
    }

    private static ElementFunction.OfInt lookUp(byte[] table) {
        return (x, y, s) -> table[index(x, y)];
    }

    private static int index(int x, int y) {
        return (x & 0xff) << Byte.SIZE | y & 0xff;
    }

    private byte[] table(Operation operation) {
        byte[] results = new byte[1 << 2 * Byte.SIZE];
        for (int x = Byte.MIN_VALUE; x <= Byte.MAX_VALUE; x++) {
            for (int y = Byte.MIN_VALUE; y <= Byte.MAX_VALUE; y++) {
                float result = operation.apply(format.toFloat((byte) x), format.toFloat((byte) y));
                results[index(x, y)] = format.ofFloat(Float.float16ToFloat(Float.floatToFloat16(result)));
            }
        }
        return results;
    }
}
