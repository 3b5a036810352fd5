package org.millrace.device.arithmetic;

/**
 * What is computed for one element, on one of the types that Java computes with. {@code x} is this rank's element,
 * {@code y} the one received (or {@code x} again where the function has one operand only), {@code s} the operation's
 * scalar.
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

    /** On binary64. */
    @FunctionalInterface
    non-sealed interface OfDouble extends ElementFunction {
        double apply(double x, double y, double s);
    }
}
