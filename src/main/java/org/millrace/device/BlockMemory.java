package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.element.ElementKernel;

/**
 * The elements that an operation moves on one rank, and the arithmetic that combines them.
 *
 * @param input      this rank's elements; not accessed by operations that only receive
 * @param output     destination of the result; not accessed by operations that only send
 * @param own        combines this rank's elements with received ones; includes the step that each rank's elements
 *                   undergo once
 * @param among      combines elements that were received from several ranks; the same as {@code own}, but without the
 *                   step that each rank's elements undergo once
 * @param readInput  whether the input is registered, so that the peers' devices may read the elements there that this
 *                   rank sends
 * @param readOutput whether the output is registered, likewise
 */
record BlockMemory(MemorySegment input, MemorySegment output, int elementBytes, ElementKernel own, ElementKernel among,
        boolean readInput, boolean readOutput) {

    public static BlockMemory reduced(MemorySegment input, MemorySegment output, DataType type, ReduceOp op,
            int ranks) {
        ElementKernel own = ElementKernel.of(type, op, ranks);
        return new BlockMemory(input, output, type.bytes(), own,
                own.hasPreOp() ? ElementKernel.of(type, ReduceOp.SUM, ranks) : own, false, false);
    }

    /** Returns memory whose elements are moved unchanged, as bytes. */
    public static BlockMemory copied(MemorySegment input, MemorySegment output) {
        ElementKernel bytes = ElementKernel.of(DataType.UINT8, ReduceOp.SUM, 1);
        return new BlockMemory(input, output, 1, bytes, bytes, false, false);
    }

    /** Returns the same memory for a result that several ranks compute. */
    BlockMemory reducedAlike(DataType type, ReduceOp.BuiltIn op) {
        ElementKernel alike = ElementKernel.alike(type, op);
        return new BlockMemory(input, output, elementBytes, alike, alike, readInput, readOutput);
    }

    public BlockMemory readByPeers(boolean ofInput, boolean ofOutput) {
        return new BlockMemory(input, output, elementBytes, own, among, ofInput, ofOutput);
    }
}
