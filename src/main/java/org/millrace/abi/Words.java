package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/** How descriptors read and write: coordinates are a segment and an offset in bytes, so that handles are constants. */
final class Words {
    static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private Words() {
    }

    /**
     * Checks once what later accesses rely on: a segment of exactly the struct's size, aligned for atomic access.
     *
     * @throws IllegalArgumentException if it is not
     */
    static MemorySegment checked(String struct, MemorySegment segment, long bytes, long alignment) {
        if (segment.byteSize() != bytes) {
            throw new IllegalArgumentException(
                    "%s is %d bytes, but the segment has %d: pass a slice of exactly the struct's size"
                            .formatted(struct, bytes, segment.byteSize()));
        }
        try {
            return segment.asSlice(0, bytes, alignment);
        } catch (IllegalArgumentException misaligned) {
            throw new IllegalArgumentException(
                    "%s must be aligned to %d bytes, but %s is not: allocate native memory with that alignment"
                            .formatted(struct, alignment, segment),
                    misaligned);
        }
    }
}
