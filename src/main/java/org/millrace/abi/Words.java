package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Objects;

/**
 * The accesses of descriptors. Their coordinates are a segment and an offset in bytes, so that handles are constants.
 * Memory that threads poll is accessed by address, in {@link #MEMORY}. The owner of such memory stops the threads
 * before it frees the memory.
 */
final class Words {
    static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    /**
     * All memory of the process, for accesses by address. The segment is a constant of the global scope, so an access
     * compiles to a single machine access. For a segment in a field, each access checks the class, the bounds and the
     * session. Only for structs that were {@link #checked} and for lines that are {@link #readable} or
     * {@link #writable}, and only while the caller keeps a reference to their segment.
     */
    static final MemorySegment MEMORY = everything();

    private Words() {}

    @SuppressWarnings("restricted")
    private static MemorySegment everything() {
        return MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
    }

    /**
     * Returns the address of a checked struct.
     *
     * @throws IllegalArgumentException if the segment is a Java array, which has no address
     */
    static long address(String struct, MemorySegment checked) {
        if (!checked.isNative()) {
            throw new IllegalArgumentException(
                    struct + " must lie in native memory, and " + checked + " is of Java's heap");
        }
        return checked.address();
    }

    /**
     * Returns the address of a part of a segment, which is checked once for all reads. The method does not check
     * alignment, because accesses check it at no cost.
     *
     * @throws IllegalArgumentException  if the segment is a Java array, which has no address
     * @throws IllegalStateException     if the segment's arena is closed
     * @throws IndexOutOfBoundsException if the part does not lie completely in the segment
     */
    static long readable(String name, MemorySegment segment, long offset, long bytes) {
        if (!segment.scope().isAlive()) {
            throw new IllegalStateException("the arena of " + name + " is closed: " + segment);
        }
        return address(name, segment) + Objects.checkFromIndexSize(offset, bytes, segment.byteSize());
    }

    /**
     * Returns the address of a part of a segment, which is checked once for all writes, as {@link #readable} checks it
     * for reads.
     *
     * @throws UnsupportedOperationException if the segment is read-only
     */
    static long writable(String name, MemorySegment segment, long offset, long bytes) {
        if (segment.isReadOnly()) {
            throw new UnsupportedOperationException(name + " are to be written, and " + segment + " is read-only");
        }
        return readable(name, segment, offset, bytes);
    }

    /**
     * Checks once the condition on which later accesses rely: the segment has exactly the struct's size, and is aligned
     * for atomic access.
     *
     * @throws IllegalArgumentException if the condition is not met
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
