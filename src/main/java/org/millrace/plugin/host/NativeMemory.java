package org.millrace.plugin.host;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.foreign.Words;

/**
 * Access to NCCL's memory by address. The plugin receives NCCL's pointers as plain numbers. A memory segment for each
 * pointer would create garbage on every call, and NCCL's pointers have no length that a segment could check.
 */
public final class NativeMemory {

    private NativeMemory() {}

    /** Writes a pointer or a 64-bit number. */
    public static void putLong(long address, long value) {
        Words.MEMORY.set(ValueLayout.JAVA_LONG, address, value);
    }

    public static void putInt(long address, int value) {
        Words.MEMORY.set(ValueLayout.JAVA_INT, address, value);
    }

    /** Reads a pointer or a 64-bit number. */
    public static long getLong(long address) {
        return Words.MEMORY.get(ValueLayout.JAVA_LONG, address);
    }

    public static int getInt(long address) {
        return Words.MEMORY.get(ValueLayout.JAVA_INT, address);
    }

    public static MemorySegment at(long address, long bytes) {
        return Words.MEMORY.asSlice(address, bytes);
    }

    public static String string(long address) {
        return Words.MEMORY.getString(address);
    }
}
