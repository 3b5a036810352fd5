package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Objects;

/**
 * How descriptors read and write: coordinates are a segment and an offset in bytes, so that handles are constants. What
 * threads poll is accessed by address, in {@link #MEMORY}; the owner of such memory stops them before it frees it.
 */
final class Words {
    static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    /**
     * All memory of the process, to be accessed by address. A constant of the global scope: what is left of an access
     * is the machine's, where a segment in a field has its class, bounds and session checked each time. Only for
     * structs that were {@link #checked} and lines that are {@link #readable} or {@link #writable}, and by who keeps
     * their segment.
     */
    static final MemorySegment MEMORY = everything();

    private Words() {}

    @SuppressWarnings("restricted")
    private static MemorySegment everything() {
        return MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
    }

    /**
     * Where a struct lies that was checked.
     *
     * @throws IllegalArgumentException if it is an array of Java's, which has no address
     */
    static long address(String struct, MemorySegment checked) {
        if (!checked.isNative()) {
            throw new IllegalArgumentException(
                    struct + " must lie in native memory, and " + checked + " is of Java's heap");
        }
        return checked.address();
    }

    /**
     * Where a part of a segment lies, which is checked once for all reads of it. Alignment is not: accesses check it
     * for nothing.
     *
     * @throws IllegalArgumentException  if it is an array of Java's, which has no address
     * @throws IllegalStateException     if its arena is closed
     * @throws IndexOutOfBoundsException if it is not all in the segment
     */
    static long readable(String what, MemorySegment segment, long offset, long bytes) {
        if (!segment.scope().isAlive()) {
            throw new IllegalStateException("the arena of " + what + " is closed: " + segment);
        }
        return address(what, segment) + Objects.checkFromIndexSize(offset, bytes, segment.byteSize());
    }

    /**
     * The same for writes.
     *
     * @throws UnsupportedOperationException if the segment is read-only
     */
    static long writable(String what, MemorySegment segment, long offset, long bytes) {
        if (segment.isReadOnly()) {
            throw new UnsupportedOperationException(what + " are to be written, and " + segment + " is read-only");
        }
        return readable(what, segment, offset, bytes);
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
