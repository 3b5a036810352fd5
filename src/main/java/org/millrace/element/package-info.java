/**
 * Elements of every type: their bits and values, what operands they make up, and the arithmetic of the emulated device:
 * every type and every operation, rounded when and as NCCL's CUDA kernels round on an H100 or H200.
 *
 * <h2>What is computed</h2> A reduction passes through the ranks one after the other. Each combines its own element
 * {@code x} with what it received, {@code y}:
 *
 * <pre>
 *   operation        first rank   every rank after it      and the last
 *   SUM              x            x + y
 *   PROD             x            x * y
 *   MAX, MIN         x            the larger, the smaller
 *   PreMulSum        x * s        x * s + y
 *   AVG of floats    x * s        x * s + y
 *   AVG of integers  x            x + y                    / ranks
 * </pre>
 *
 * <p>
 * The scalar of a float average is 1 / ranks, computed in binary64, rounded to binary32 and from there to the element
 * type (NCCL 2.28.9, {@code src/enqueue.cc}, {@code hostToDevRedOp}). Each rank has its own scalar in PreMulSum. A
 * group of one rank only multiplies ({@code src/device/onerank.cu}; NCCL refuses that for 8-bit floats, Millrace does
 * not).
 *
 * <h2>What is rounded when</h2> After every hop the result is an element again. Elements.Rounding is to nearest, ties
 * to even; subnormal numbers are kept. ({@code src/device/reduce_kernel.h}, as compiled for {@code sm_90}, and CUDA's
 * headers for the types.)
 * <ul>
 * <li><b>Integers</b> wrap around. The average is the sum, wrapped, divided once at the end, towards zero.</li>
 * <li><b>binary16, bfloat16, binary32, binary64</b>: a sum and a product are rounded once, in their own type; too large
 * is infinity. In {@code x * s + y} the product is <i>not</i> rounded: nvcc fuses both into one instruction (its
 * {@code -fmad}, on by default), in the protocols LL and Simple. In LL128 NCCL fuses some elements of binary32 and
 * binary64, depending on their place in a line, and none of 16 bits, so that NCCL itself gives other last bits through
 * LL128; Millrace fuses always.</li>
 * <li><b>8-bit floats</b>: both operands become binary16, which is exact; the result is rounded to binary16 and then to
 * 8 bits. In {@code x * s + y} the product is rounded to 8 bits before it is added. What is too large, infinities of
 * e5m2 too, becomes the largest finite number, even in MAX and MIN.</li>
 * <li><b>MAX and MIN of floats</b>: a number wins against NaN; +0 is larger than -0.</li>
 * </ul>
 *
 * <p>
 * Which NaN a sum or product of several is (sign and payload) is left to the processor, except in 8-bit floats, where
 * there is one: it takes the first operand's, and which one is the first the JVM decides when it compiles the loop, so
 * that two runs may differ. All ranks get the same bits: where several compute the same element, each for itself, every
 * NaN becomes the one whose bits but the sign are all set ({@code ElementKernel.alike}). CUDA's is that, or in binary64
 * one of the operands'.
 *
 * <p>
 * All this is checked against what NCCL 2.28.9 returned on two H200s, bit for bit, for 72 combinations of type and
 * operation ({@code NcclAgreementTest}).
 *
 * <h2>How it is done</h2> {@link org.millrace.element.ElementKernel} composes an operation of steps; {@code Loops} has
 * a loop for each step and type: a copy of the template {@code ElementLoop}, so that HotSpot compiles, and where it can
 * vectorizes, each by itself.
 */
@NullMarked
package org.millrace.element;

import org.jspecify.annotations.NullMarked;
