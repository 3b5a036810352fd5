/**
 * Elements of every type: their bits and values, the checks of operands, and the arithmetic of the emulated device. The
 * arithmetic covers every type and every operation. It rounds at the same places and in the same way as NCCL's CUDA
 * kernels on an H100 or H200.
 *
 * <h2>Computation</h2> A reduction passes through the ranks one after another. Each rank combines its own element
 * {@code x} with the received element {@code y}:
 *
 * <pre>
 *   operation        first rank   every rank after it      then on the last rank
 *   SUM              x            x + y
 *   PROD             x            x * y
 *   MAX, MIN         x            the larger, the smaller
 *   PreMulSum        x * s        x * s + y
 *   AVG of floats    x * s        x * s + y
 *   AVG of integers  x            x + y                    divided by ranks
 * </pre>
 *
 * <p>
 * The scalar {@code s} of a float average is 1 / ranks, computed in binary64, rounded to binary32 and then to the
 * element type (NCCL 2.28.9, {@code src/enqueue.cc}, {@code hostToDevRedOp}). In PreMulSum each rank has its own
 * scalar. In a group of one rank, the multiplication is the only step ({@code src/device/onerank.cu}). NCCL refuses
 * this multiplication for 8-bit floats, but Millrace does not.
 *
 * <h2>Rounding</h2> The result is rounded to an element after every rank. Rounding is to nearest, ties to even.
 * Subnormal numbers are kept. These rules come from {@code src/device/reduce_kernel.h}, as compiled for {@code sm_90},
 * and CUDA's headers for the types.
 * <ul>
 * <li><b>Integers</b> wrap around. The average is the wrapped sum, divided once at the end, rounded towards zero.</li>
 * <li><b>binary16, bfloat16, binary32, binary64</b>: a sum and a product are rounded once, in their own type. A value
 * that is too large becomes infinity. In {@code x * s + y} the product is <i>not</i> rounded in the protocols LL and
 * Simple, because nvcc fuses both operations into one instruction (its {@code -fmad}, on by default). In LL128 NCCL
 * fuses the operations for some elements of binary32 and binary64, depending on their position in a line, and for no
 * 16-bit elements. The last bits of NCCL's results therefore differ in LL128. Millrace always fuses.</li>
 * <li><b>8-bit floats</b>: both operands are converted to binary16, which is exact. The result is rounded to binary16
 * and then to 8 bits. In {@code x * s + y} the product is rounded to 8 bits before it is added. A value that is too
 * large, including infinities of e5m2, becomes the largest finite number, even in MAX and MIN.</li>
 * <li><b>MAX and MIN of floats</b>: the result of a number and a NaN is the number; +0 is larger than -0.</li>
 * </ul>
 *
 * <p>
 * A sum or product of several NaNs is one NaN among them, with its sign and payload: the processor selects the first
 * operand. The JVM decides which operand is the first one when it compiles the loop, so the results of two runs can
 * differ. 8-bit floats have only one NaN. All ranks get the same bits. If several ranks compute the same element
 * independently, every NaN is replaced by the NaN with all bits set except the sign ({@code ElementKernel.alike}).
 * CUDA's kernels return the same NaN, except in binary64: there they return the NaN of one of the operands.
 *
 * <p>
 * {@code NcclAgreementTest} compares all of this bit for bit with the results of NCCL 2.28.9 on two H200s, for 72
 * combinations of type and operation.
 *
 * <h2>Implementation</h2> {@link org.millrace.element.ElementKernel} composes an operation from steps. {@code Loops}
 * has a loop for each step and type. Each loop is a copy of the template {@code ElementLoop}, so that HotSpot compiles
 * each loop separately, and vectorizes it if possible.
 */
@NullMarked
package org.millrace.element;

import org.jspecify.annotations.NullMarked;
