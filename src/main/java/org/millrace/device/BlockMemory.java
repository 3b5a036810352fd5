package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.element.ElementKernel;

/**
 * The input and the output of an operation on one rank, and the arithmetic that combines elements.
 *
 * @param input      this rank's elements; not accessed by operations that only receive
 * @param output     destination of the result; not accessed by operations that only send
 * @param own        arithmetic that combines this rank's elements with received elements. This arithmetic includes the
 *                   operator's first step, which is applied once to the elements of each rank, for example a
 *                   multiplication.
 * @param among      arithmetic that combines elements from several other ranks; the same as {@code own}, but without
 *                   the operator's first step
 * @param readInput  whether the input is registered. The devices of peers may then read sent elements in the input
 *                   instead of in slots
 * @param readOutput whether the output is registered. The devices of peers may then read sent elements in the output
 *                   instead of in slots
 */
record BlockMemory(MemorySegment input, MemorySegment output, int elementBytes, ElementKernel own, ElementKernel among,
        boolean readInput, boolean readOutput) {

    public static BlockMemory reduced(MemorySegment input, MemorySegment output, DataType type, ReduceOp op,
            int ranks) {
        boolean onHeap = !input.isNative() || !output.isNative();
        ElementKernel own = ElementKernel.of(type, op, ranks).staged(onHeap);
        return new BlockMemory(input, output, type.bytes(), own,
                own.hasPreOp() ? ElementKernel.of(type, ReduceOp.SUM, ranks).staged(onHeap) : own, false, false);
    }

    /** Returns memory for an operation that does not change the elements. The elements are moved as bytes. */
    public static BlockMemory copied(MemorySegment input, MemorySegment output) {
        ElementKernel bytes = ElementKernel.of(DataType.UINT8, ReduceOp.SUM, 1);
        return new BlockMemory(input, output, 1, bytes, bytes, false, false);
    }

    /**
     * Returns the same memory with other arithmetic, which computes the same bits on all ranks. Used for a result that
     * several ranks compute independently.
     */
    BlockMemory reducedAlike(DataType type, ReduceOp.BuiltIn op) {
        ElementKernel alike = ElementKernel.alike(type, op);
        return new BlockMemory(input, output, elementBytes, alike, alike, readInput, readOutput);
    }

    public BlockMemory readByPeers(boolean ofInput, boolean ofOutput) {
        return new BlockMemory(input, output, elementBytes, own, among, ofInput, ofOutput);
    }
}
