package org.millrace.element;

import java.lang.foreign.MemorySegment;

/**
 * Checks the two segments of a copy. Without the checks, an error of a segment would appear only later, on a thread of
 * the device.
 */
public final class CopiedSegments {

    /**
     * Thread that replaces the device's threads in checks of access, because neither this thread nor the device's
     * threads own an arena. Never started.
     */
    private static final Thread ANY_THREAD = new Thread(() -> {});

    private CopiedSegments() {}

    /**
     * Checks two segments of host memory that a thread of the device copies later.
     *
     * @throws IllegalArgumentException if the sizes differ, the target is read-only, or an arena is closed or confined
     */
    public static void check(MemorySegment source, MemorySegment target) {
        if (source.byteSize() != target.byteSize()) {
            throw new IllegalArgumentException("copy of " + source.byteSize() + " bytes into " + target.byteSize()
                    + ": source and destination must be of one size");
        }
        checkAccess("source", source);
        checkAccess("destination", target);
        checkWritable(target);
    }

    /**
     * Checks that a thread of the device can access host memory.
     *
     * @param role name of the memory in the error's text
     * @throws IllegalArgumentException if its arena is closed or confined
     */
    public static void checkAccess(String role, MemorySegment segment) {
        if (!segment.scope().isAlive()) {
            throw new IllegalArgumentException("copy: the " + role + " lies in an arena that is closed");
        }
        if (!segment.isAccessibleBy(ANY_THREAD)) {
            throw new IllegalArgumentException("copy: the " + role + " lies in a confined arena, which the device's"
                    + " thread may not access; use Arena.ofShared()");
        }
    }

    /** Throws an {@link IllegalArgumentException} if the destination of a copy is read-only. */
    public static void checkWritable(MemorySegment target) {
        if (target.isReadOnly()) {
            throw new IllegalArgumentException("copy: the destination is read-only");
        }
    }
}
