package org.millrace.foreign;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Objects;

/**
 * Handles and addresses for access to memory with the layout of C structs. A call of a handle takes two coordinates: a
 * segment, and an offset in bytes. One constant handle therefore serves all fields of a type. Memory that threads poll
 * is accessed by its address, as an offset in {@link #MEMORY}. The owner of such memory stops the threads before it
 * frees the memory.
 */
public final class Words {
    public static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    public static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    /**
     * Handle for plain accesses, without the alignment check that {@link #LONG} makes in each access. Used for many
     * words in sequence, after one check of their alignment. The caller orders these accesses by a fence.
     */
    public static final VarHandle PLAIN_LONG = ValueLayout.JAVA_LONG_UNALIGNED.varHandle();

    /**
     * All memory of the process, for accesses by address. The segment is a constant of the global scope, so an access
     * compiles to a single machine instruction. If a field held the segment, each access would check the segment's
     * class, bounds and session. A caller may access only structs that were {@link #checked}, and lines that are
     * {@link #readable} or {@link #writable}. It may also access files that stay mapped, host memory that it has
     * allocated, and memory whose address native code has passed. The caller must keep a reference to the segment of a
     * struct or line.
     */
    public static final MemorySegment MEMORY = everything();

    private Words() {}

    /**
     * Returns the access of a field, for a static constant of the field's class.
     *
     * @param owner lookup of the class that declares the field
     * @param name  name of the field
     * @param type  type of the field
     */
    public static VarHandle field(MethodHandles.Lookup owner, String name, Class<?> type) {
        try {
            return owner.findVarHandle(owner.lookupClass(), name, type);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    @SuppressWarnings("restricted")
    private static MemorySegment everything() {
        return MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
    }

    /**
     * Returns the address of a struct that was {@link #checked}.
     *
     * @param struct name of the struct in messages
     * @throws IllegalArgumentException if the segment is a Java array, which has no address
     */
    public static long address(String struct, MemorySegment checked) {
        if (!checked.isNative()) {
            throw new IllegalArgumentException(
                    struct + " must lie in native memory, and " + checked + " lies in the Java heap");
        }
        return checked.address();
    }

    /**
     * Checks once that a range of a segment can be read, and returns the address of the range. Does not check the
     * alignment, because each access checks the alignment at no cost.
     *
     * @param name name of the data in messages
     * @throws IllegalArgumentException  if the segment is a Java array, which has no address
     * @throws IllegalStateException     if the segment's arena is closed
     * @throws IndexOutOfBoundsException if the range does not lie completely in the segment
     */
    public static long readable(String name, MemorySegment segment, long offset, long bytes) {
        if (!segment.scope().isAlive()) {
            throw new IllegalStateException("the arena of " + name + " is closed: " + segment);
        }
        return address(name, segment) + Objects.checkFromIndexSize(offset, bytes, segment.byteSize());
    }

    /**
     * Checks once that a range of a segment can be written, and returns the address of the range. Makes the same checks
     * as {@link #readable}.
     *
     * @throws UnsupportedOperationException if the segment is read-only
     */
    public static long writable(String name, MemorySegment segment, long offset, long bytes) {
        if (segment.isReadOnly()) {
            throw new UnsupportedOperationException(name + " are to be written, and " + segment + " is read-only");
        }
        return readable(name, segment, offset, bytes);
    }

    /**
     * Checks the condition for accesses by address: the segment has exactly the size of the struct, and is aligned for
     * atomic accesses. Returns the segment.
     *
     * @throws IllegalArgumentException if the size or the alignment is wrong
     */
    public static MemorySegment checked(String struct, MemorySegment segment, long bytes, long alignment) {
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
