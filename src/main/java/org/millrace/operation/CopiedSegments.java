package org.millrace.operation;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Checks host memory before a thread of the device accesses the memory. Without the checks, an error would appear only
 * when the thread accesses the memory.
 */
public final class CopiedSegments {

    /**
     * Thread that represents the device's threads in access checks. Like the device's threads, it owns no arena. It is
     * never started.
     */
    private static final Thread ANY_THREAD = new Thread(() -> {});

    private CopiedSegments() {}

    /**
     * Checks two segments of host memory that a thread of the device copies later.
     *
     * @throws IllegalArgumentException if the sizes differ, the target is read-only, or an arena is closed or confined
     */
    public static void check(MemorySegment source, MemorySegment target) {
        Required.argument("copy", "source", source);
        if (source.byteSize() != Required.argument("copy", "destination", target).byteSize()) {
            throw new IllegalArgumentException("copy of " + source.byteSize() + " bytes into " + target.byteSize()
                    + ": source and destination must be of one size");
        }
        check("source", source, false);
        check("destination", target, true);
    }

    /**
     * Checks that a thread of the device can access host memory.
     *
     * @param role name of the memory in the error's text
     * @throws IllegalArgumentException for the reasons of {@link #problem}
     */
    public static void check(String role, MemorySegment segment, boolean written) {
        String problem = problem(segment, written);
        if (problem != null) {
            throw new IllegalArgumentException("copy: the " + role + " " + problem);
        }
    }

    /** Returns the reason why a thread of the device cannot use memory; null if it can. */
    public static @Nullable String problem(MemorySegment memory, boolean written) {
        return written && memory.isReadOnly() ? "is read-only: pass writable memory for the result"
                : !memory.scope().isAlive() ? "lies in an arena that is closed"
                        : memory.isAccessibleBy(ANY_THREAD) ? null
                                : "lies in a confined arena, which the device's thread may not access: use"
                                        + " Arena.ofShared()";
    }
}
