package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Values of a kernel's parameters. An object is created once for a kernel's signature. Its values can be changed before
 * each launch.
 */
public final class KernelParameters {

    private final MemorySegment[] values;
    private final MemorySegment pointers;

    private KernelParameters(Arena arena, MemoryLayout[] types) {
        values = new MemorySegment[types.length];
        pointers = types.length == 0 ? MemorySegment.NULL : arena.allocate(ValueLayout.ADDRESS, types.length);
        for (int i = 0; i < types.length; i++) {
            values[i] = arena.allocate(types[i]);
            pointers.setAtIndex(ValueLayout.ADDRESS, i, values[i]);
        }
    }

    /**
     * {@return parameters with the value 0}
     *
     * @param arena lifetime of the memory for the values
     * @param types types of the parameters as the kernel declares them; {@link ValueLayout#ADDRESS} for a pointer
     */
    public static KernelParameters allocate(Arena arena, MemoryLayout... types) {
        return new KernelParameters(arena, types);
    }

    /** Sets the parameter at an index to a pointer. */
    public KernelParameters pointer(int index, MemorySegment memory) {
        values[index].set(ValueLayout.JAVA_LONG, 0, memory.address());
        return this;
    }

    /** Sets the parameter at an index to a 32-bit integer. */
    public KernelParameters set(int index, int value) {
        values[index].set(ValueLayout.JAVA_INT, 0, value);
        return this;
    }

    /** Sets the parameter at an index to a 64-bit integer. */
    public KernelParameters set(int index, long value) {
        values[index].set(ValueLayout.JAVA_LONG, 0, value);
        return this;
    }

    /** Sets the parameter at an index to a 32-bit floating-point number. */
    public KernelParameters set(int index, float value) {
        values[index].set(ValueLayout.JAVA_FLOAT, 0, value);
        return this;
    }

    /**
     * Sets the parameter at an index to a struct that the kernel takes by value, such as NCCL's device communicator.
     *
     * @throws IllegalArgumentException if the size of the struct differs from the size of the parameter, because the
     *                                  kernel would then read undefined bytes
     */
    public KernelParameters struct(int index, MemorySegment value) {
        if (value.byteSize() != values[index].byteSize()) {
            throw new IllegalArgumentException("parameter " + index + " has " + values[index].byteSize()
                    + " bytes, and the struct for it " + value.byteSize());
        }
        MemorySegment.copy(value, 0, values[index], 0, value.byteSize());
        return this;
    }

    MemorySegment pointers() {
        return pointers;
    }
}
