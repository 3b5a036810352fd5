package org.millrace.element;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;

/** One pass over the elements of a block: {@code out[i] = function(x[i], y[i], scalar)}. */
interface Loop {

    /**
     * Runs over a block of at most {@link #BLOCK_BYTES}; offsets are bytes.
     *
     * @param y      second operands; {@code x} itself where the function has one operand only
     * @param out    results: memory apart from both operands, or the very same as one of them
     * @param scalar the function's argument: the bits of an element, or a number of ranks
     */
    void run(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at, int count, long scalar);

    /**
     * Bytes of the longest block: three of them fit in the first level of any cache, and what surrounds a block costs
     * little beside it.
     */
    int BLOCK_BYTES = 8 << 10;

    /** What the classes made of {@link ElementLoop} differ in. */
    record Parameters(Representation representation, ElementFunction function) {
    }

    /**
     * Makes a loop that is compiled by itself.
     *
     * <p>
     * HotSpot compiles a method once, with what it learnt from all its callers. A loop that took its function as an
     * argument would soon have seen many, and would call it through an interface for each element: 10 to 30 times
     * slower than the vector instructions that the same loop becomes when its function is known. C++ instantiates a
     * template; here {@link ElementLoop} is defined once more from its own class file, as a
     * {@linkplain MethodHandles.Lookup#defineHiddenClassWithClassData hidden class} with the parameters as its class
     * data.
     */
    static Loop of(Representation representation, ElementFunction function) {
        try (InputStream classFile = ElementLoop.class.getResourceAsStream("ElementLoop.class")) {
            return (Loop) MethodHandles.lookup()
                    .defineHiddenClassWithClassData(classFile.readAllBytes(), new Parameters(representation, function),
                            true)
                    .lookupClass()
                    .getDeclaredConstructor()
                    .newInstance();
        } catch (IOException | ReflectiveOperationException | NullPointerException e) {
            throw new IllegalStateException("cannot define a copy of " + ElementLoop.class.getName()
                    + "; its class file must be readable as a resource beside it (in the same jar, or in the "
                    + "native image)", e);
        }
    }

    /** How an element lies in memory, and which of Java's types computes with it. */
    enum Representation {
        /** 8 bits, computed with as 32: widened with their sign, cut off when stored. */
        BYTE(1),
        /** 16 bits, computed with as the upper half of 32. */
        SHORT(2),
        INT(4),
        LONG(8),
        /** IEEE 754 binary16, computed with as binary32, rounded when stored. */
        FLOAT16(2),
        /** bfloat16, likewise. */
        BFLOAT16(2),
        FLOAT32(4),
        FLOAT64(8);

        private final int bytes;

        Representation(int bytes) {
            this.bytes = bytes;
        }

        int bytes() {
            return bytes;
        }
    }

    /**
     * What is computed for one element, on one of the types that Java computes with. {@code x} is this rank's element,
     * {@code y} the one received (or {@code x} again where the function has one operand only), {@code s} the
     * operation's scalar.
     */
    sealed interface ElementFunction {

        /** On 32 bits: integers up to that size, or a float's bits. */
        @FunctionalInterface
        non-sealed interface OfInt extends ElementFunction {
            int apply(int x, int y, int s);
        }

        /** On 64 bits: integers, or a double's bits. */
        @FunctionalInterface
        non-sealed interface OfLong extends ElementFunction {
            long apply(long x, long y, long s);
        }

        /** On binary32, which holds every value of the narrower floats too. */
        @FunctionalInterface
        non-sealed interface OfFloat extends ElementFunction {
            float apply(float x, float y, float s);
        }

        @FunctionalInterface
        non-sealed interface OfDouble extends ElementFunction {
            double apply(double x, double y, double s);
        }
    }
}
