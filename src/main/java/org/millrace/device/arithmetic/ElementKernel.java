package org.millrace.device.arithmetic;

import java.lang.foreign.MemorySegment;

/**
 * The arithmetic of one element type and one operation: what NCCL's kernels do to the elements of a slice while they
 * move it. Obtained from {@link ElementKernels}; immutable, without state, shared by threads. No call allocates.
 *
 * <p>
 * With <i>pre</i>, <i>op</i> and <i>post</i> as {@linkplain org.millrace.device.arithmetic the package} defines them, a
 * reduction over ranks is {@code copy} on the rank where it starts, {@code reduce} on every rank after it, with
 * {@code last} on the one where it ends. A group of one rank is {@code copy} alone.
 *
 * <p>
 * Offsets are bytes and counts are elements. Memory may be on the heap or native and offsets need not be multiples of
 * the element size. A destination may be the very memory that an operand is read from, but must not overlap it in any
 * other way. Every method throws {@link IndexOutOfBoundsException} when a range lies outside its segment or
 * {@code count} is negative, before anything is written.
 */
public interface ElementKernel {

    /**
     * Whether {@link #copy} changes elements, as an operation does that multiplies before it adds. Where it does not,
     * callers can move bytes by any means they like.
     */
    boolean hasPreOp();

    /** Starts a reduction: {@code destination[i] = pre(input[i])}. */
    void copy(MemorySegment input, long inputOffset, MemorySegment destination, long destinationOffset, long count);

    /**
     * Continues a reduction: {@code destination[i] = op(pre(input[i]), received[i])}, or {@code post} of that.
     *
     * @param received what the ranks before this one made of their elements
     * @param last     whether every rank has contributed now, so that the operation's end (the division of an integer
     *                 average) is due
     */
    void reduce(MemorySegment input, long inputOffset, MemorySegment received, long receivedOffset,
            MemorySegment destination, long destinationOffset, long count, boolean last);
}
