package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.DataType;

class ReferenceTest {

    private static final long SEED = 42;
    private static final int RANKS = 5;
    private static final int COUNT = 1000;
    private static final long FIRST = 123;

    private final RandomOperands operands = RandomOperands.of(SEED, 7, true);

    private MemorySegment operand(DataType type, Reduction reduction, int rank) {
        MemorySegment memory = Arena.ofAuto().allocate((long) COUNT * type.bytes(), 8);
        Reference.of(type, reduction, RANKS, operands).fill(memory, rank, FIRST, COUNT);
        return memory;
    }

    private long wrong(MemorySegment memory, DataType type, Reduction reduction) {
        return Reference.of(type, reduction, RANKS, operands).countWrong(memory, FIRST, COUNT);
    }

    /** Returns element {@code i}, decoded from little-endian bytes without the code under test. */
    private static BigInteger integer(MemorySegment memory, DataType type, int i) {
        byte[] bytes = new byte[type.bytes()];
        for (int b = 0; b < bytes.length; b++) {
            bytes[bytes.length - 1 - b] = memory.get(ValueLayout.JAVA_BYTE, (long) i * bytes.length + b);
        }
        return type.label().startsWith("u") ? new BigInteger(1, bytes) : new BigInteger(bytes);
    }

    private static BigInteger combine(Reduction reduction, List<BigInteger> values) {
        BigInteger sum = values.stream().reduce(BigInteger.ZERO, BigInteger::add);
        return switch (reduction) {
            case SUM -> sum;
            case PROD -> values.stream().reduce(BigInteger.ONE, BigInteger::multiply);
            case MAX -> values.stream().reduce(BigInteger::max).orElseThrow();
            case MIN -> values.stream().reduce(BigInteger::min).orElseThrow();
            case AVG -> sum.divide(BigInteger.valueOf(values.size()));
            case MULSUM -> {
                BigInteger scaled = BigInteger.ZERO;
                for (int rank = 0; rank < values.size(); rank++) {
                    scaled = scaled.add(values.get(rank).multiply(BigInteger.valueOf(Reduction.factor(rank))));
                }
                yield scaled;
            }
        };
    }

    @ParameterizedTest
    @EnumSource(value = DataType.class, names = {"INT8", "UINT8", "INT32", "UINT32", "INT64", "UINT64"})
    void integersAreExact(DataType type) {
        for (Reduction reduction : Reduction.values()) {
            List<MemorySegment> inputs = new ArrayList<>();
            for (int rank = 0; rank < RANKS; rank++) {
                inputs.add(operand(type, reduction, rank));
            }
            MemorySegment result = Arena.ofAuto().allocate((long) COUNT * type.bytes(), 8);
            for (int i = 0; i < COUNT; i++) {
                int at = i;
                BigInteger value = combine(reduction, inputs.stream().map(input -> integer(input, type, at)).toList());
                for (int b = 0; b < type.bytes(); b++) {
                    result.set(ValueLayout.JAVA_BYTE, (long) i * type.bytes() + b, value.shiftRight(8 * b).byteValue());
                }
            }
            String where = type + " " + reduction + " seed " + SEED;
            assertEquals(0, wrong(result, type, reduction), where);
            long place = 500L * type.bytes();
            result.set(ValueLayout.JAVA_BYTE, place, (byte) (result.get(ValueLayout.JAVA_BYTE, place) ^ 1));
            assertEquals(1, wrong(result, type, reduction), "one bit flipped: " + where);
        }
    }

    @ParameterizedTest
    @EnumSource(Reduction.class)
    void floatsAreRightInAnyOrderAndWrongBeyondRounding(Reduction reduction) {
        MemorySegment result = Arena.ofAuto().allocate(COUNT * 4L, 8);
        for (boolean backwards : new boolean[] {false, true}) {
            for (int i = 0; i < COUNT; i++) {
                float value = Float.NaN;
                for (int step = 0; step < RANKS; step++) {
                    int rank = backwards ? RANKS - 1 - step : step;
                    float next =
                            operand(reduction, rank)[i] * (reduction == Reduction.MULSUM ? Reduction.factor(rank) : 1);
                    value = step == 0 ? next : switch (reduction) {
                        case SUM, AVG, MULSUM -> value + next;
                        case PROD -> value * next;
                        case MAX -> Math.max(value, next);
                        case MIN -> Math.min(value, next);
                    };
                }
                result.setAtIndex(ValueLayout.JAVA_FLOAT, i, reduction == Reduction.AVG ? value / RANKS : value);
            }
            assertEquals(0, wrong(result, DataType.FLOAT32, reduction), reduction + " seed " + SEED);
        }
        float right = result.getAtIndex(ValueLayout.JAVA_FLOAT, 3);
        result.setAtIndex(ValueLayout.JAVA_FLOAT, 3, right + 128 * Math.max(1, Math.abs(right)) * 0x1p-23f);
        result.setAtIndex(ValueLayout.JAVA_FLOAT, 5, Float.NaN);
        assertEquals(2, wrong(result, DataType.FLOAT32, reduction), reduction + " seed " + SEED);
    }

    private float[] operand(Reduction reduction, int rank) {
        return floats.computeIfAbsent(rank,
                r -> operand(DataType.FLOAT32, reduction, r).toArray(ValueLayout.JAVA_FLOAT));
    }

    private final Map<Integer, float[]> floats = new HashMap<>();

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            names = {"INT32", "UINT64", "FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
    void poisonIsNeverRight(DataType type) {
        MemorySegment memory = Arena.ofAuto().allocate((long) COUNT * type.bytes(), 8).fill((byte) 0xFF);
        for (Reduction reduction : Reduction.values()) {
            assertEquals(COUNT, wrong(memory, type, reduction), reduction + " seed " + SEED);
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            names = {"FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
    void operandsAreExactNumbersOfTheirTypeAndUseAllItsFractions(DataType type) {
        FloatFormat format = FloatFormat.of(type);
        Set<Double> different = new HashSet<>();
        MemorySegment memory = Arena.ofAuto().allocate(8, 8);
        for (int rank = 0; rank < 2; rank++) {
            MemorySegment elements = operand(type, Reduction.SUM, rank);
            for (int i = 0; i < COUNT; i++) {
                double value = get(format, elements, i);
                assertTrue(Math.abs(value) >= (rank == 0 ? 1 : 0.5) && Math.abs(value) < (rank == 0 ? 2 : 1),
                        type + " " + value);
                different.add(value);
                set(format, memory, 0, value);
                assertEquals(value, get(format, memory, 0));
            }
        }
        double all = 4 * 0.5 / format.roundoff(); // values have either sign and one of two exponents
        assertTrue(different.size() > 0.5 * Math.min(all, 2 * COUNT), type + ": " + different.size());
    }

    private static double get(FloatFormat format, MemorySegment memory, int index) {
        return format.decode(Reference.get(memory, format.bytes(), index));
    }

    private static void set(FloatFormat format, MemorySegment memory, int index, double value) {
        Reference.set(memory, format.bytes(), index, format.encode(value));
    }

    @Test
    void formatsAreThoseOfTheirSpecifications() {
        assertEquals(448, FloatFormat.E4M3.decode(0x7E));
        assertEquals(-0x1p-6, FloatFormat.E4M3.decode(0x88));
        assertEquals(0x1p-9, FloatFormat.E4M3.decode(0x01));
        assertEquals(Double.NaN, FloatFormat.E4M3.decode(0xFF));
        assertEquals(57344, FloatFormat.E5M2.decode(0x7B));
        assertEquals(0x1p-16, FloatFormat.E5M2.decode(0x01));
        assertEquals(Double.POSITIVE_INFINITY, FloatFormat.E5M2.decode(0x7C));
        assertEquals(65504, FloatFormat.BINARY16.decode(0x7BFF));
        assertEquals(-1.5, FloatFormat.BFLOAT16.decode(0xBFC0));
    }

    @ParameterizedTest
    @EnumSource(value = DataType.class, names = {"FLOAT16", "BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
    void aMaximumOfASmallTypeIsExact(DataType type) {
        FloatFormat format = FloatFormat.of(type);
        MemorySegment result = Arena.ofAuto().allocate((long) COUNT * type.bytes(), 8);
        MemorySegment[] inputs = new MemorySegment[RANKS];
        for (int rank = 0; rank < RANKS; rank++) {
            inputs[rank] = operand(type, Reduction.MAX, rank);
        }
        for (int i = 0; i < COUNT; i++) {
            double max = Double.NEGATIVE_INFINITY;
            for (MemorySegment input : inputs) {
                max = Math.max(max, get(format, input, i));
            }
            set(format, result, i, max);
        }
        assertEquals(0, wrong(result, type, Reduction.MAX), type + " seed " + SEED);
        result.set(ValueLayout.JAVA_BYTE, 0, (byte) (result.get(ValueLayout.JAVA_BYTE, 0) ^ 1));
        assertEquals(1, wrong(result, type, Reduction.MAX), "the last bit flipped: " + type + " seed " + SEED);
    }

    @Test
    void operandsDifferByRankCaseAndPlacement() {
        assertTrue(operands.bits(0, 1) != operands.bits(1, 0));
        assertTrue(operands.bits(0, 0) != operands.bits(0, 1));
        assertTrue(operands.bits(0, 0) != RandomOperands.of(SEED, 7, false).bits(0, 0));
        assertTrue(operands.bits(0, 0) != RandomOperands.of(SEED, 8, true).bits(0, 0));
        assertEquals(operands.bits(2, 3), RandomOperands.of(SEED, 7, true).bits(2, 3));
    }
}
