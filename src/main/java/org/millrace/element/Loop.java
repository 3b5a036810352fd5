package org.millrace.element;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;

/** One pass over the elements of a block: {@code out[i] = function(x[i], y[i], scalar)}. */
interface Loop {

    /**
     * Processes a block of at most {@link #BLOCK_BYTES} bytes. Offsets are bytes.
     *
     * @param y      second operands; {@code x} itself if the function has only one operand
     * @param out    memory for the results; either it is identical to an operand's memory, or it does not overlap any
     *               operand
     * @param scalar argument of the function: the bits of an element, or a number of ranks
     */
    void run(MemorySegment x, long xAt, MemorySegment y, long yAt, MemorySegment out, long at, int count, long scalar);

    /**
     * Size of the longest block in bytes. Three blocks fit in the first-level cache of any processor. The overhead of a
     * block is small in comparison with the computation of a block of this size.
     */
    int BLOCK_BYTES = 8 << 10;

    /** The constants that differ between the classes defined from {@link ElementLoop}. */
    record Parameters(Representation representation, ElementFunction function) {
    }

    /**
     * Creates a loop that HotSpot compiles separately.
     *
     * <p>
     * HotSpot compiles a method once, with the profile of all its callers. If the function were an argument of the
     * loop, the profile would soon contain many functions. The loop would then call the function through an interface
     * for each element. If the function is known, HotSpot compiles the same loop to vector instructions, which are 10
     * to 30 times faster. C++ instantiates a template for this purpose. In Java, this method defines another copy of
     * {@link ElementLoop} from its class file. The copy is a
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

    /** Layout of an element in memory, and the Java type that computes with the element. */
    enum Representation {
        /** 8 bits, computed in 32 bits: sign-extended when loaded, truncated when stored. */
        BYTE(1),
        /** 16 bits, computed in 32 bits: loaded into the upper half above 16 zeros, stored from the upper half. */
        SHORT(2),
        INT(4),
        LONG(8),
        /** IEEE 754 binary16, computed as binary32, rounded when stored. */
        FLOAT16(2),
        /** bfloat16, computed as binary32, rounded when stored. */
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
     * The computation for one element, in one of Java's arithmetic types. {@code x} is this rank's element. {@code y}
     * is the received element, or {@code x} again if the function has only one operand. {@code s} is the operation's
     * scalar.
     */
    sealed interface ElementFunction {

        /** A function on values of 32 bits: integers of at most 32 bits, or the bits of floats. */
        @FunctionalInterface
        non-sealed interface OfInt extends ElementFunction {
            int apply(int x, int y, int s);
        }

        /** A function on values of 64 bits: integers, or the bits of doubles. */
        @FunctionalInterface
        non-sealed interface OfLong extends ElementFunction {
            long apply(long x, long y, long s);
        }

        /** A function on binary32, which also represents every value of the narrower floats. */
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
