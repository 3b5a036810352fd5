package org.millrace.element;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.IntToLongFunction;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.DataType;
import org.millrace.element.Loops.Step;

/**
 * Compares the results of every step of every type with {@link Reference}. The operands of 8-bit types are all pairs of
 * elements. For 16-bit types, every element is paired with some other elements. The other types use edge cases and
 * random pairs.
 */
@Tag("slow")
class ElementLoopTest {

    private static final long SEED = 20_260_214;

    @ParameterizedTest
    @EnumSource(DataType.class)
    void everyStepAgreesWithTheReference(DataType type) {
        Set<Step> steps = EnumSet.allOf(Step.class);
        if (type.isFloating()) {
            steps.remove(Step.DIVIDE);
        }
        if (!type.isFloating() || type.bytes() == 1) {
            steps.remove(Step.ONE_NAN);
        }
        SplittableRandom random = new SplittableRandom(SEED);
        for (Step step : steps) {
            switch (type.bytes()) {
                case 1 -> compare(type, step, scalar(type, step, random), 1 << 16, i -> i >> 8, i -> i);
                case 2 -> {
                    for (long partner : partners(type, random)) {
                        compare(type, step, scalar(type, step, random), 1 << 16, i -> i, i -> partner);
                    }
                }
                default -> {
                    compare(type, step, scalar(type, step, random), 64 * 64, i -> edge(type, i >> 6),
                            i -> edge(type, i & 63));
                    long seed = random.nextLong();
                    compare(type, step, scalar(type, step, random), 20_000, i -> near(type, seed + i),
                            i -> near(type, seed - 1 - i));
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(value = DataType.class, names = {"FLOAT16", "BFLOAT16"})
    void productsAndSumsNextToTiesAreRoundedOnce(DataType type) {
        // One operand is at or next to a tie between two results. The other operand is so small that it affects only
        // the direction of the rounding.
        long one = Elements.bits(type, 1);
        for (long scalar = one; scalar < one + 128; scalar++) {
            double halfUnit = Accuracy.ulp(type, 1) / 2 / ElementValues.value(type, scalar);
            long nearest = Elements.bits(type, halfUnit);
            compare(type, Step.SCALE_ADD, scalar, 64, i -> nearest - 4 + i / 8, i -> one + i % 8);
            compare(type, Step.SCALE_ADD, scalar, 1024, i -> one + i / 8, i -> i % 8 < 4 ? i % 4 : 0x8000 | i % 4);
        }
    }

    private static void compare(DataType type, Step step, long scalar, int count, IntToLongFunction xs,
            IntToLongFunction ys) {
        int bytes = type.bytes();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment x = arena.allocate((long) count * bytes);
            MemorySegment y = arena.allocate((long) count * bytes);
            MemorySegment out = arena.allocate((long) count * bytes);
            for (int i = 0; i < count; i++) {
                Elements.setBits(type, x, (long) i * bytes, xs.applyAsLong(i));
                Elements.setBits(type, y, (long) i * bytes, ys.applyAsLong(i));
            }
            new ElementKernel(bytes, null, Loops.of(type, step), null, scalar).reduce(x, 0, y, 0, out, 0, count, false);
            for (int i = 0; i < count; i++) {
                long a = ElementValues.getBits(type, x, (long) i * bytes);
                long b = ElementValues.getBits(type, y, (long) i * bytes);
                long actual = ElementValues.getBits(type, out, (long) i * bytes);
                long expected = Reference.apply(type, step, a, b, scalar);
                if (!same(type, expected, actual, step != Step.ONE_NAN)) {
                    assertEquals(Long.toHexString(expected & mask(type)), Long.toHexString(actual & mask(type)),
                            type + " " + step + " x=" + Long.toHexString(a) + " y=" + Long.toHexString(b) + " s="
                                    + Long.toHexString(scalar) + " seed " + SEED);
                }
            }
        }
    }

    /**
     * Returns whether the bits are equal, or both are NaN. The bits of 8-bit results must be equal, because 0x7f is the
     * only NaN in such results.
     */
    private static boolean same(DataType type, long expected, long actual, boolean anyNan) {
        return (expected ^ actual) << Long.SIZE - 8 * type.bytes() == 0
                || anyNan && type.isFloating() && type.bytes() > 1 && Double.isNaN(ElementValues.value(type, expected))
                        && Double.isNaN(ElementValues.value(type, actual));
    }

    private static long mask(DataType type) {
        return -1L >>> Long.SIZE - 8 * type.bytes();
    }

    private static long scalar(DataType type, Step step, SplittableRandom random) {
        if (step == Step.DIVIDE) {
            return random.nextInt(1, 1000);
        }
        return type.isFloating() ? Elements.bits(type, random.nextDouble(0.1, 3)) : random.nextInt(-100, 100);
    }

    private static long[] partners(DataType type, SplittableRandom random) {
        long infinity = Elements.bits(type, Double.POSITIVE_INFINITY);
        return new long[] {0, 0x8000, 1, infinity, infinity + 1, infinity - 1, Elements.bits(type, -1.5),
                near(type, random.nextLong()), near(type, random.nextLong())};
    }

    /**
     * Returns the bits of zeros, subnormals, ones, largest numbers, infinities and NaNs of floats. Integers use the
     * same bits.
     */
    private static long edge(DataType type, int index) {
        long infinity = type.bytes() == 4 ? 0x7f80_0000L : 0x7ff0_0000_0000_0000L;
        long one = type.bytes() == 4 ? 0x3f80_0000L : 0x3ff0_0000_0000_0000L;
        long least = type.bytes() == 4 ? 0x0080_0000L : 0x0010_0000_0000_0000L;
        long[] starts = {2, least, 2 * least, one, infinity - 1, infinity, infinity + least / 2, infinity + least - 3};
        long magnitude = starts[index >> 2 & 7] - 2 + (index & 3);
        return index < 32 ? magnitude : magnitude | 1L << 8 * type.bytes() - 1;
    }

    /**
     * Returns a number of either sign between about 1/16 and 16. Sums of two such numbers need rounding, and can cancel
     * leading bits.
     */
    private static long near(DataType type, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        double value = Math.scalb(random.nextDouble(1, 2), random.nextInt(-4, 4));
        return type.isFloating() ? Elements.bits(type, random.nextBoolean() ? value : -value) : random.nextLong();
    }
}
