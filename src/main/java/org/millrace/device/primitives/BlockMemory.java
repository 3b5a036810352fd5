package org.millrace.device.primitives;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.device.arithmetic.ElementKernel;

/**
 * The elements that an operation moves on one rank, and how it combines them.
 *
 * @param input  this rank's elements; not looked at by operations that only receive
 * @param output where the result goes; not looked at by operations that only send
 * @param read   whether the devices of peers may read there what this rank sends: the input, the output, both or
 *               neither
 * @param among  combines with each other what came from several ranks: the same, but for what is done to every rank's
 *               elements once
 */
public record BlockMemory(MemorySegment input, MemorySegment output, int elementBytes, ElementKernel own,
        ElementKernel among, Read read) {

    /** Which of an operation's memory is registered, so that peers may read it where it lies. */
    public enum Read {
        /** None of it: everything goes through slots. */
        NONE(false, false),
        /** The input. */
        INPUT(true, false),
        /** The output. */
        OUTPUT(false, true),
        /** Both. */
        BOTH(true, true);

        final boolean input;
        final boolean output;

        Read(boolean input, boolean output) {
            this.input = input;
            this.output = output;
        }

        public static Read of(boolean input, boolean output) {
            return input ? output ? BOTH : INPUT : output ? OUTPUT : NONE;
        }
    }

    public static BlockMemory reduced(MemorySegment input, MemorySegment output, DataType type, ReduceOp op,
            int ranks) {
        ElementKernel own = ElementKernel.of(type, op, ranks);
        return new BlockMemory(input, output, type.bytes(), own,
                own.hasPreOp() ? ElementKernel.of(type, ReduceOp.SUM, ranks) : own, Read.NONE);
    }

    /** Memory whose elements are moved as they are: bytes. */
    public static BlockMemory copied(MemorySegment input, MemorySegment output) {
        ElementKernel bytes = ElementKernel.of(DataType.UINT8, ReduceOp.SUM, 1);
        return new BlockMemory(input, output, 1, bytes, bytes, Read.NONE);
    }

    /** The same memory, of which peers may read. */
    public BlockMemory readBy(Read readable) {
        return new BlockMemory(input, output, elementBytes, own, among, readable);
    }
}
