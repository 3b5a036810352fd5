package org.millrace.element;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.element.Loops.Step;

/**
 * The code around the arithmetic: slices of any length at any offset, permitted overlaps of operands, the last step of
 * an operation, errors.
 */
@Tag("slow")
class ElementKernelTest {

    private static final long SEED = 7;
    private static final List<ReduceOp> OPS =
            List.of(ReduceOp.SUM, ReduceOp.PROD, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.AVG, new ReduceOp.PreMulSum(3));
    private static final int RANKS = 3;

    @SuppressWarnings("restricted")
    private static Stream<MemorySegment> memories() {
        return Stream.of(Arena.global().allocate(1 << 18), Arena.ofShared().allocate(1 << 18),
                MemorySegment.ofArray(new byte[1 << 18]),
                MemorySegment.ofAddress(Arena.global().allocate(1 << 18).address()).reinterpret(1 << 18));
    }

    @ParameterizedTest
    @MethodSource("memories")
    void anyCountAtAnyOffsetTouchesItsElementsOnly(MemorySegment memory) {
        for (DataType type : DataType.values()) {
            for (ReduceOp op : OPS) {
                for (int count : new int[] {0, 1, 7, Loop.BLOCK_BYTES / type.bytes(),
                        Loop.BLOCK_BYTES / type.bytes() + 3}) {
                    check(memory, type, op, count, 1 << 16, 2 << 16, 3 << 16);
                    check(memory, type, op, count, (1 << 16) + 1, (2 << 16) + 3, (3 << 16) + 5);
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource(DataType.class)
    void destinationMayBeEitherOperand(DataType type) {
        MemorySegment memory = Arena.global().allocate(1 << 18);
        for (ReduceOp op : OPS) {
            check(memory, type, op, 2500, 1 << 16, 2 << 16, 1 << 16);
            check(memory, type, op, 2500, 1 << 16, 2 << 16, 2 << 16);
            check(memory, type, op, 2500, 1 << 16, 1 << 16, 1 << 16);
        }
    }

    @Test
    void mappedMemoryIsMemoryLikeAnyOther(@TempDir Path folder) throws IOException {
        Path file = Files.write(folder.resolve("slots"), new byte[1 << 18]);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
                Arena arena = Arena.ofShared()) {
            MemorySegment memory = channel.map(FileChannel.MapMode.READ_WRITE, 0, 1 << 18, arena);
            check(memory, DataType.FLOAT16, ReduceOp.AVG, 9000, 1 << 16, 2 << 16, 3 << 16);
        }
    }

    @Test
    void integerAveragesAreDividedOnceAtTheEndAndTowardsZero() {
        assertEquals(-2, reduceAll(DataType.INT32, ReduceOp.AVG, -3, -2, -2).getAtIndex(ValueLayout.JAVA_INT, 0));
        assertEquals(2, reduceAll(DataType.INT32, ReduceOp.AVG, 3, 2, 2).getAtIndex(ValueLayout.JAVA_INT, 0));
        // both sums wrap to 244 in 8 bits, which is -12 as a signed number
        assertEquals(81, ElementValues.get(DataType.UINT8, reduceAll(DataType.UINT8, ReduceOp.AVG, 200, 200, 100), 0));
        assertEquals(-4, ElementValues.get(DataType.INT8, reduceAll(DataType.INT8, ReduceOp.AVG, 100, 100, 44), 0));
    }

    @Test
    void floatAveragesAreScaledBeforeTheyCanOverflow() {
        assertEquals(0x1p127, ElementValues.get(DataType.FLOAT32,
                reduceAll(DataType.FLOAT32, ReduceOp.AVG, 0x1p127, 0x1p127, 0x1p127), 0), 0x1p104);
    }

    @Test
    void aGroupOfOneRankIsACopy() {
        for (DataType type : DataType.values()) {
            MemorySegment element = Arena.global().allocate(type.bytes());
            ElementValues.set(type, element, 0, 96);
            ElementKernel.of(type, ReduceOp.AVG, 1).copy(element, 0, element, 0, 1);
            assertEquals(96, ElementValues.get(type, element, 0), type.label());
        }
    }

    /**
     * Simulates two ranks that exchange their elements. Most elements are NaNs. A sum of two NaNs is the first or the
     * second of them, depending on the processor.
     */
    @ParameterizedTest
    @EnumSource(DataType.class)
    void ranksThatComputeTheSameGetTheSameBits(DataType type) {
        int count = 2501;
        int bytes = count * type.bytes();
        SplittableRandom random = new SplittableRandom(SEED);
        byte[] elements = new byte[4 * bytes];
        random.nextBytes(elements);
        MemorySegment memory = MemorySegment.ofArray(elements);
        long infinity = type.isFloating() ? Elements.bits(type, Double.POSITIVE_INFINITY) : 0;
        for (int i = 0; i < 2 * count; i += random.nextInt(1, 3)) {
            long at = (long) i * type.bytes();
            Elements.setBits(type, memory, at, ElementValues.getBits(type, memory, at) | infinity);
        }
        for (ReduceOp.BuiltIn op : List.of(ReduceOp.BuiltIn.SUM, ReduceOp.BuiltIn.PROD, ReduceOp.BuiltIn.MAX,
                ReduceOp.BuiltIn.MIN)) {
            ElementKernel kernel = ElementKernel.alike(type, op);
            kernel.reduce(memory, 0, memory, bytes, memory, 2 * bytes, count, true);
            kernel.reduce(memory, bytes, memory, 0, memory, 3 * bytes, count, true);
            assertEquals(-1, memory.asSlice(2 * bytes, bytes).mismatch(memory.asSlice(3 * bytes, bytes)),
                    type + " " + op.label());
        }
    }

    @Test
    void onlyScaledOperationsHaveSomethingToDoBefore() {
        for (DataType type : DataType.values()) {
            assertEquals(type.isFloating(), ElementKernel.of(type, ReduceOp.AVG, RANKS).hasPreOp(), type.label());
            assertTrue(ElementKernel.of(type, new ReduceOp.PreMulSum(2), RANKS).hasPreOp(), type.label());
            assertEquals(false, ElementKernel.of(type, ReduceOp.SUM, RANKS).hasPreOp(), type.label());
        }
    }

    @Test
    void whatLiesOutsideIsRefusedBeforeAnythingIsWritten() {
        MemorySegment memory = Arena.global().allocate(64);
        MemorySegment small = Arena.global().allocate(32);
        ElementKernel kernel = ElementKernel.of(DataType.INT32, new ReduceOp.PreMulSum(1), 2);
        for (long count : new long[] {9, -1, Long.MAX_VALUE, 1L << 62}) {
            assertThrows(IndexOutOfBoundsException.class,
                    () -> kernel.reduce(memory, 0, memory, 0, small, 0, count, true));
            assertThrows(IndexOutOfBoundsException.class,
                    () -> kernel.reduce(small, 0, memory, 0, memory, 0, count, true));
            assertThrows(IndexOutOfBoundsException.class,
                    () -> kernel.reduce(memory, 0, small, 0, memory, 0, count, true));
            assertThrows(IndexOutOfBoundsException.class, () -> kernel.copy(memory, 0, small, 0, count));
        }
        assertThrows(IndexOutOfBoundsException.class, () -> kernel.copy(memory, -4, small, 0, 1));
        assertThrows(IndexOutOfBoundsException.class, () -> kernel.copy(memory, 0, small, 29, 1));
        assertArrayEquals(new byte[32], small.toArray(ValueLayout.JAVA_BYTE));
    }

    @Test
    void impossibleOperationsSayWhy() {
        assertTrue(assertThrows(IllegalArgumentException.class, () -> ElementKernel.of(DataType.INT8, ReduceOp.AVG, 0))
                .getMessage()
                .contains("0 ranks"));
        assertTrue(assertThrows(IllegalArgumentException.class,
                () -> ElementKernel.of(DataType.UINT8, new ReduceOp.PreMulSum(0.5), 2)).getMessage()
                .contains("0.5 is no uint8"));
    }

    @Test
    void noCallAllocates() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        MemorySegment memory = Arena.global().allocate(1 << 18);
        for (DataType type : DataType.values()) {
            for (ReduceOp op : OPS) {
                ElementKernel kernel = ElementKernel.of(type, op, RANKS);
                run(kernel, memory, 100);
                long before = threads.getCurrentThreadAllocatedBytes();
                run(kernel, memory, 100);
                long allocated = threads.getCurrentThreadAllocatedBytes() - before;
                assertTrue(allocated < 200, allocated + " bytes in 200 calls of " + type + " " + op.label());
            }
        }
    }

    private static void run(ElementKernel kernel, MemorySegment memory, int times) {
        for (int i = 0; i < times; i++) {
            kernel.copy(memory, 0, memory, 4096, 20);
            kernel.reduce(memory, 0, memory, 4096, memory, 8192, 20, true);
        }
    }

    /** Reduces over ranks that have one element each. */
    private static MemorySegment reduceAll(DataType type, ReduceOp op, double... elements) {
        ElementKernel kernel = ElementKernel.of(type, op, elements.length);
        MemorySegment input = Arena.global().allocate(8);
        MemorySegment result = Arena.global().allocate(8);
        for (int rank = 0; rank < elements.length; rank++) {
            ElementValues.set(type, input, 0, elements[rank]);
            if (rank == 0) {
                kernel.copy(input, 0, result, 0, 1);
            } else {
                kernel.reduce(input, 0, result, 0, result, 0, 1, rank == elements.length - 1);
            }
        }
        return result;
    }

    /**
     * Runs two hops over {@code count} elements in random memory. Afterwards the bytes of the result equal the
     * reference, and all other bytes are unchanged.
     */
    private static void check(MemorySegment memory, DataType type, ReduceOp op, int count, long x, long y, long out) {
        SplittableRandom random = new SplittableRandom(SEED);
        byte[] bytes = new byte[(int) memory.byteSize()];
        random.nextBytes(bytes);
        MemorySegment expected = MemorySegment.ofArray(bytes);
        MemorySegment.copy(expected, 0, memory, 0, bytes.length);
        ElementKernel kernel = ElementKernel.of(type, op, RANKS);
        boolean scaled = op instanceof ReduceOp.PreMulSum || op == ReduceOp.AVG && type.isFloating();
        long scalar = op instanceof ReduceOp.PreMulSum(double factor) ? Elements.bits(type, factor)
                : Elements.bits(type, type.isFloating() ? 1 / 3f : 0);
        for (int i = 0; i < count; i++) {
            long at = (long) i * type.bytes();
            long a = ElementValues.getBits(type, expected, x + at);
            long b = ElementValues.getBits(type, expected, y + at);
            Step step = scaled ? Step.SCALE_ADD
                    : List.of(Step.ADD, Step.MULTIPLY, Step.MAXIMUM, Step.MINIMUM, Step.ADD).get(OPS.indexOf(op));
            long result = Reference.apply(type, step, a, b,
                    type == DataType.FLOAT64 && op == ReduceOp.AVG ? Elements.bits(type, 1.0 / 3) : scalar);
            Elements.setBits(type, expected, out + at,
                    op == ReduceOp.AVG && !scaled ? Reference.apply(type, Step.DIVIDE, result, 0, RANKS) : result);
        }
        kernel.reduce(memory, x, memory, y, memory, out, count, true);
        for (int i = 0; i < count; i++) {
            long at = out + (long) i * type.bytes();
            if (type.isFloating() && Double.isNaN(ElementValues.get(type, memory, at))
                    && Double.isNaN(ElementValues.get(type, expected, at))) {
                Elements.setBits(type, expected, at, ElementValues.getBits(type, memory, at));
            }
        }
        assertEquals(-1, memory.mismatch(expected),
                type + " " + op.label() + " count " + count + " at " + x + ", " + y + " to " + out + " seed " + SEED);
    }
}
