package org.millrace.element;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.DataType;
import org.millrace.ReduceOp;

class ElementsTest {

    private static final long SEED = 11;

    @ParameterizedTest
    @EnumSource(DataType.class)
    void everyValueHasItsBits(DataType type) {
        SplittableRandom random = new SplittableRandom(SEED);
        for (int i = 0; i < 1 << 16; i++) {
            long bits = type.bytes() <= 2 ? i : random.nextLong() >>> random.nextInt(64);
            double value = ElementValues.value(type, bits);
            boolean exact = type.bytes() < 8 || type == DataType.FLOAT64 || Long.numberOfLeadingZeros(bits) >= 11;
            boolean infinite = type == DataType.FLOAT8_E5M2 && Double.isInfinite(value);
            if (exact && !infinite && !Double.isNaN(value)) {
                long mask = -1L >>> Long.SIZE - 8 * type.bytes();
                assertEquals(bits & mask, Elements.bits(type, value) & mask, type + " " + value + " seed " + SEED);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64", "FLOAT8_E4M3", "FLOAT8_E5M2"})
    void valuesAreRoundedOnce(DataType type) {
        Reference.Format format = Reference.Format.of(type);
        Reference.Format once = new Reference.Format(format.exponentBits(), format.fractionBits(), format.largest(),
                format.nan(), false);
        SplittableRandom random = new SplittableRandom(SEED);
        for (int i = 0; i < 100_000; i++) {
            // a random value, or one at or next to the middle between two numbers of the format
            double number = ElementValues.value(type, random.nextLong());
            double value = i % 2 == 0 ? Math.scalb(random.nextDouble(1, 2), random.nextInt(-30, 20))
                    : Math.nextAfter(number + Accuracy.ulp(type, number) / 2, random.nextInt(-1, 2) * Double.MAX_VALUE);
            if (Double.isFinite(value) && value != 0 && Math.abs(value) < format.toDouble(format.largest())) {
                assertEquals(format.toDouble(once.round(Reference.Dyadic.of(value))),
                        ElementValues.value(type, Elements.bits(type, value)), value + " seed " + SEED);
            }
        }
    }

    @Test
    void unsigned64BitIntegersReachBeyondLong() {
        assertEquals(0x1p64, ElementValues.value(DataType.UINT64, -1));
        assertEquals(0x1p63, ElementValues.value(DataType.UINT64, Long.MIN_VALUE));
        assertEquals(Long.MIN_VALUE, Elements.bits(DataType.UINT64, 0x1p63));
        assertEquals(-2048, Elements.bits(DataType.UINT64, 0x1p64 - 2048));
        // the last bit of the integer decides which double is nearest
        assertEquals(0x1p63 + 2048, ElementValues.value(DataType.UINT64, Long.MIN_VALUE + 1025));
    }

    @Test
    void integersTakeOnlyWhatTheyCanHold() {
        for (double value : new double[] {-1, 256, 0.5, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertThrows(IllegalArgumentException.class, () -> Elements.bits(DataType.UINT8, value));
        }
        assertThrows(IllegalArgumentException.class, () -> Elements.bits(DataType.INT64, 0x1p63));
        assertThrows(IllegalArgumentException.class, () -> Elements.bits(DataType.UINT64, 0x1p64));
        assertEquals(Long.MIN_VALUE, Elements.bits(DataType.INT64, -0x1p63));
    }

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64", "FLOAT8_E4M3", "FLOAT8_E5M2"})
    void unitInTheLastPlaceIsTheDistanceToTheNextNumber(DataType type) {
        for (double value : new double[] {1, 1.5, 2, 3, 100, 0, ElementValues.value(type, 1),
                ElementValues.value(type, 2)}) {
            long bits = Elements.bits(type, value);
            assertEquals(ElementValues.value(type, bits + 1) - ElementValues.value(type, bits),
                    Accuracy.ulp(type, value), type + " " + value);
        }
    }

    @ParameterizedTest
    @EnumSource(value = DataType.class, names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT8_E4M3", "FLOAT8_E5M2"})
    void sumsStayWithinTolerance(DataType type) {
        SplittableRandom random = new SplittableRandom(SEED);
        ElementKernel kernel = ElementKernel.of(type, ReduceOp.SUM, 8);
        MemorySegment element = Arena.global().allocate(8);
        MemorySegment sum = Arena.global().allocate(8);
        double worst = 0;
        for (int run = 0; run < 2000; run++) {
            ElementValues.set(type, sum, 0, 0);
            double exact = 0;
            for (int rank = 0; rank < 8; rank++) {
                ElementValues.set(type, element, 0, random.nextDouble());
                exact += ElementValues.get(type, element, 0);
                kernel.reduce(element, 0, sum, 0, sum, 0, 1, rank == 7);
            }
            double error = Math.abs(ElementValues.get(type, sum, 0) - exact);
            // The rounding error of an addition depends on the size of the partial sum. The partial sum may exceed the
            // exact sum by the error that was measured above.
            double tolerance = Accuracy.tolerance(type, exact + error, 8);
            assertTrue(error <= tolerance, type + " error " + error + " tolerance " + tolerance + " seed " + SEED);
            worst = Math.max(worst, error / tolerance);
        }
        assertTrue(worst > 0.1, "a tolerance ten times what happens finds nothing: " + worst);
    }

    @Test
    void integersAreExact() {
        assertEquals(0, Accuracy.tolerance(DataType.INT64, 1e18, 1000));
    }
}
