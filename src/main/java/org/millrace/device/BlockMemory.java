package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.element.ElementKernel;

/**
 * The elements that an operation moves on one rank, and how it combines them.
 *
 * @param input      this rank's elements; not looked at by operations that only receive
 * @param output     where the result goes; not looked at by operations that only send
 * @param among      combines with each other what came from several ranks: the same, but for what is done to every
 *                   rank's elements once
 * @param readInput  whether the input is registered, so that the devices of peers may read there what this rank sends
 * @param readOutput the same of the output
 */
record BlockMemory(MemorySegment input, MemorySegment output, int elementBytes, ElementKernel own, ElementKernel among,
        boolean readInput, boolean readOutput) {

    public static BlockMemory reduced(MemorySegment input, MemorySegment output, DataType type, ReduceOp op,
            int ranks) {
        ElementKernel own = ElementKernel.of(type, op, ranks);
        return new BlockMemory(input, output, type.bytes(), own,
                own.hasPreOp() ? ElementKernel.of(type, ReduceOp.SUM, ranks) : own, false, false);
    }

    /** Memory whose elements are moved as they are: bytes. */
    public static BlockMemory copied(MemorySegment input, MemorySegment output) {
        ElementKernel bytes = ElementKernel.of(DataType.UINT8, ReduceOp.SUM, 1);
        return new BlockMemory(input, output, 1, bytes, bytes, false, false);
    }

    /** The same for a result that several ranks compute. */
    BlockMemory reducedAlike(DataType type, ReduceOp.BuiltIn op) {
        ElementKernel alike = ElementKernel.alike(type, op);
        return new BlockMemory(input, output, elementBytes, alike, alike, readInput, readOutput);
    }

    public BlockMemory readByPeers(boolean ofInput, boolean ofOutput) {
        return new BlockMemory(input, output, elementBytes, own, among, ofInput, ofOutput);
    }
}
