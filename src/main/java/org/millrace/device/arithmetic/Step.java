package org.millrace.device.arithmetic;

/**
 * What can happen to an element in one pass; an operation takes one or two of these passes. {@code x} is this rank's
 * element, {@code y} the one received, {@code s} the operation's scalar.
 */
enum Step {
    /** {@code x + y}. */
    ADD,
    /** {@code x * y}. */
    MULTIPLY,
    /** The smaller. */
    MINIMUM,
    /** The larger. */
    MAXIMUM,
    /** {@code x * s}. */
    SCALE,
    /** {@code x * s + y}, rounded once; in the 8-bit floats the product is rounded first. */
    SCALE_ADD,
    /** {@code x / s} towards zero; {@code s} is a number of ranks. Integers only. */
    DIVIDE
}
