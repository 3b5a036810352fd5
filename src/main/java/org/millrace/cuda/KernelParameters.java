package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Values of a kernel's parameters. Created once for a signature; the values change from launch to launch. */
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
     * {@return room for arguments, all zero}
     *
     * @param arena lifetime of the room
     * @param types types of the parameters as the kernel declares them; {@link ValueLayout#ADDRESS} for a pointer
     */
    public static KernelParameters allocate(Arena arena, MemoryLayout... types) {
        return new KernelParameters(arena, types);
    }

    /** Sets a pointer. */
    public KernelParameters pointer(int index, MemorySegment memory) {
        values[index].set(ValueLayout.JAVA_LONG, 0, memory.address());
        return this;
    }

    /** Sets a 32-bit integer. */
    public KernelParameters set(int index, int value) {
        values[index].set(ValueLayout.JAVA_INT, 0, value);
        return this;
    }

    /** Sets a 64-bit integer. */
    public KernelParameters set(int index, long value) {
        values[index].set(ValueLayout.JAVA_LONG, 0, value);
        return this;
    }

    /** Sets a 32-bit floating-point number. */
    public KernelParameters set(int index, float value) {
        values[index].set(ValueLayout.JAVA_FLOAT, 0, value);
        return this;
    }

    /**
     * Sets a struct that the kernel takes by value, such as NCCL's device communicator.
     *
     * @throws IllegalArgumentException if the sizes differ, because the kernel would then read undefined bytes
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
