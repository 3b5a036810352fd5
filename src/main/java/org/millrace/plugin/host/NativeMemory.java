package org.millrace.plugin.host;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Access to NCCL's memory by address. The plugin receives NCCL's pointers as plain numbers. A memory segment for each
 * pointer would create garbage on every call, and NCCL's pointers have no length that a segment could check.
 */
public final class NativeMemory {

    private static final MemorySegment ALL = everything();

    private NativeMemory() {}

    @SuppressWarnings("restricted") // NCCL's pointers have no length
    private static MemorySegment everything() {
        return MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
    }

    /** Writes a pointer or a 64-bit number. */
    public static void putLong(long address, long value) {
        ALL.set(ValueLayout.JAVA_LONG, address, value);
    }

    public static void putInt(long address, int value) {
        ALL.set(ValueLayout.JAVA_INT, address, value);
    }

    /** Reads a pointer or a 64-bit number. */
    public static long getLong(long address) {
        return ALL.get(ValueLayout.JAVA_LONG, address);
    }

    public static int getInt(long address) {
        return ALL.get(ValueLayout.JAVA_INT, address);
    }

    public static MemorySegment at(long address, long bytes) {
        return ALL.asSlice(address, bytes);
    }

    public static String string(long address) {
        return ALL.getString(address);
    }
}
