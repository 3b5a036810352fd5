package org.millrace.element;

import java.lang.constant.ConstantDescs;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import org.jspecify.annotations.Nullable;
import org.millrace.element.Loop.ElementFunction;
import org.millrace.element.Loop.Representation;

/**
 * Template of the loops, with one method for each way to load, convert and store an element. {@link Loop#of} defines
 * further classes from the class file of this class. Each of these classes has one representation and one function as
 * constants, and runs only one of the methods. This class itself is never initialized.
 */
final class ElementLoop implements Loop {

    private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final ValueLayout.OfDouble DOUBLE = ValueLayout.JAVA_DOUBLE_UNALIGNED;

    /**
     * Mask that selects the second of two 16-bit elements in an {@code int}. Two elements are loaded together, which
     * halves the number of memory accesses.
     */
    private static final int UPPER = 0xffff_0000;

    private static final Representation REPRESENTATION = parameters().representation();
    private static final ElementFunction.@Nullable OfInt OF_INT =
            parameters().function() instanceof ElementFunction.OfInt f ? f : null;
    private static final ElementFunction.@Nullable OfLong OF_LONG =
            parameters().function() instanceof ElementFunction.OfLong f ? f : null;
    private static final ElementFunction.@Nullable OfFloat OF_FLOAT =
            parameters().function() instanceof ElementFunction.OfFloat f ? f : null;
    private static final ElementFunction.@Nullable OfDouble OF_DOUBLE =
            parameters().function() instanceof ElementFunction.OfDouble f ? f : null;

    private static Loop.Parameters parameters() {
        try {
            return MethodHandles.classData(MethodHandles.lookup(), ConstantDescs.DEFAULT_NAME, Loop.Parameters.class);
        } catch (IllegalAccessException e) {
            throw new AssertionError("a class may read its own class data", e);
        }
    }

    @Override
    public void run(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at, int count,
            long scalar) {
        switch (REPRESENTATION) {
            case BYTE -> bytes(x, xAt, y, yAt, out, at, count, (int) scalar);
            case SHORT -> shorts(x, xAt, y, yAt, out, at, count, (int) scalar);
            case INT -> ints(x, xAt, y, yAt, out, at, count, (int) scalar);
            case LONG -> longs(x, xAt, y, yAt, out, at, count, scalar);
            case FLOAT16 -> halfs(x, xAt, y, yAt, out, at, count, Float.float16ToFloat((short) scalar));
            case BFLOAT16 -> bfloats(x, xAt, y, yAt, out, at, count, Elements.BFloat16.toFloat((short) scalar));
            case FLOAT32 -> floats(x, xAt, y, yAt, out, at, count, Float.intBitsToFloat((int) scalar));
            case FLOAT64 -> doubles(x, xAt, y, yAt, out, at, count, Double.longBitsToDouble(scalar));
        }
    }

    private static void bytes(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at,
            int count, int s) {
        for (int i = 0; i < count; i++) {
            out.set(BYTE, at + i, (byte) OF_INT.apply(x.get(BYTE, xAt + i), y.get(BYTE, yAt + i), s));
        }
    }

    private static void shorts(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at,
            int count, int s) {
        int pairs = count / 2;
        for (int i = 0; i < pairs; i++) {
            int a = x.get(INT, xAt + 4L * i);
            int b = y.get(INT, yAt + 4L * i);
            out.set(INT, at + 4L * i,
                    OF_INT.apply(a & UPPER, b & UPPER, s) & UPPER | OF_INT.apply(a << 16, b << 16, s) >>> 16);
        }
        if (count % 2 != 0) {
            long last = 4L * pairs;
            out.set(SHORT, at + last,
                    (short) (OF_INT.apply(x.get(SHORT, xAt + last) << 16, y.get(SHORT, yAt + last) << 16, s) >>> 16));
        }
    }

    private static void ints(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at,
            int count, int s) {
        for (int i = 0; i < count; i++) {
            out.set(INT, at + 4L * i, OF_INT.apply(x.get(INT, xAt + 4L * i), y.get(INT, yAt + 4L * i), s));
        }
    }

    private static void longs(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at,
            int count, long s) {
        for (int i = 0; i < count; i++) {
            out.set(LONG, at + 8L * i, OF_LONG.apply(x.get(LONG, xAt + 8L * i), y.get(LONG, yAt + 8L * i), s));
        }
    }

    private static void halfs(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at,
            int count, float s) {
        for (int i = 0; i < count; i++) {
            float a = Float.float16ToFloat(x.get(SHORT, xAt + 2L * i));
            float b = Float.float16ToFloat(y.get(SHORT, yAt + 2L * i));
            out.set(SHORT, at + 2L * i, Float.floatToFloat16(OF_FLOAT.apply(a, b, s)));
        }
    }

    private static void bfloats(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at,
            int count, float s) {
        BFloat16Stage stage = BFloat16Stage.ofThisThread();
        stage.load(x, xAt, y, yAt, count);
        arrays(stage.x, stage.y, count, s);
        stage.store(out, at, count);
    }

    private static void arrays(float[] x, float[] y, int count, float s) {
        for (int i = 0; i < count; i++) {
            x[i] = OF_FLOAT.apply(x[i], y[i], s);
        }
    }

    private static void floats(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at,
            int count, float s) {
        for (int i = 0; i < count; i++) {
            out.set(FLOAT, at + 4L * i, OF_FLOAT.apply(x.get(FLOAT, xAt + 4L * i), y.get(FLOAT, yAt + 4L * i), s));
        }
    }

    private static void doubles(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at,
            int count, double s) {
        for (int i = 0; i < count; i++) {
            out.set(DOUBLE, at + 8L * i, OF_DOUBLE.apply(x.get(DOUBLE, xAt + 8L * i), y.get(DOUBLE, yAt + 8L * i), s));
        }
    }

    /**
     * A thread's arrays for the computation of a block of bfloat16 elements in binary32.
     *
     * <p>
     * HotSpot (up to at least JDK 25) has no vector form for widening 16-bit integers, nor for reinterpreting an
     * integer as a float. Elements are therefore loaded in pairs, as 32-bit integers. The upper elements of all pairs
     * become the first half of the array, and the lower elements the second half. The integers are stored to an array
     * of floats through a memory segment. HotSpot vectorizes all of these steps. They are three times as fast as the
     * conversion of one element at a time.
     */
    static final class BFloat16Stage {

        private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
        private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
        private static final int UPPER = 0xffff_0000;
        private static final ThreadLocal<BFloat16Stage> STAGES = ThreadLocal.withInitial(BFloat16Stage::new);

        /** This rank's elements; after the computation the results. */
        final float[] x = new float[Loop.BLOCK_BYTES / Short.BYTES];
        /** The received elements, in the order of {@link #x}. */
        final float[] y = new float[x.length];
        private final MemorySegment xBits = MemorySegment.ofArray(x);
        private final MemorySegment yBits = MemorySegment.ofArray(y);

        private BFloat16Stage() {}

        static BFloat16Stage ofThisThread() {
            return STAGES.get();
        }

        void load(MemorySegment xSource, long xAt, MemorySegment ySource, long yAt, int count) {
            load(xSource, xAt, xBits, count);
            load(ySource, yAt, yBits, count);
        }

        private static void load(MemorySegment source, long at, MemorySegment floats, int count) {
            int pairs = count / 2;
            loadUpper(source, at, floats, pairs);
            loadLower(source, at, floats, pairs);
            if (count % 2 != 0) {
                floats.set(INT, 8L * pairs, source.get(SHORT, at + 4L * pairs) << Short.SIZE);
            }
        }

        private static void loadUpper(MemorySegment source, long at, MemorySegment floats, int pairs) {
            for (int i = 0; i < pairs; i++) {
                floats.set(INT, 4L * i, source.get(INT, at + 4L * i) & UPPER);
            }
        }

        private static void loadLower(MemorySegment source, long at, MemorySegment floats, int pairs) {
            long lower = 4L * pairs;
            for (int i = 0; i < pairs; i++) {
                floats.set(INT, lower + 4L * i, source.get(INT, at + 4L * i) << Short.SIZE);
            }
        }

        /** Rounds the results to the nearest bfloat16 numbers, and stores these. */
        void store(MemorySegment destination, long at, int count) {
            int pairs = count / 2;
            storePairs(xBits, destination, at, pairs);
            if (count % 2 != 0) {
                destination.set(SHORT, at + 4L * pairs, Elements.BFloat16.ofFloat(x[2 * pairs]));
            }
        }

        private static void storePairs(MemorySegment floats, MemorySegment destination, long at, int pairs) {
            long lower = 4L * pairs;
            for (int i = 0; i < pairs; i++) {
                destination.set(INT, at + 4L * i, Elements.BFloat16.round(floats.get(INT, 4L * i)) & UPPER
                        | Elements.BFloat16.round(floats.get(INT, lower + 4L * i)) >>> Short.SIZE);
            }
        }
    }
}
