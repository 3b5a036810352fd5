package org.millrace.trace;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import org.millrace.foreign.Words;
import org.millrace.trace.TraceLayout.Text;

/**
 * Access to the memory of the trace's file by address, so that an access is one instruction. The file stays mapped
 * while the process lives.
 */
final class TraceMemory {

    private TraceMemory() {}

    /** Stores in opaque mode, which does not order this store with other stores. A reader sees the value soon. */
    static void set(long address, long value) {
        Words.LONG.setOpaque(Words.MEMORY, address, value);
    }

    /**
     * Stores with release, for readers of the file in other processes. A reader that sees the value also sees all
     * earlier stores of this thread.
     */
    static void release(long address, long value) {
        Words.LONG.setRelease(Words.MEMORY, address, value);
    }

    static void set(long address, int value) {
        Words.INT.setOpaque(Words.MEMORY, address, value);
    }

    static void release(long address, int value) {
        Words.INT.setRelease(Words.MEMORY, address, value);
    }

    static long get(long address) {
        return (long) Words.LONG.getOpaque(Words.MEMORY, address);
    }

    /**
     * Loads with acquire. The load pairs with native code's release of a count, and makes the counted entries visible.
     */
    static long getAcquire(long address) {
        return (long) Words.LONG.getAcquire(Words.MEMORY, address);
    }

    static int getInt(long address) {
        return (int) Words.INT.getOpaque(Words.MEMORY, address);
    }

    static void clear(long address, long bytes) {
        Words.MEMORY.asSlice(address, bytes).fill((byte) 0);
    }

    static byte[] bytes(long address, int bytes) {
        return Words.MEMORY.asSlice(address, bytes).toArray(ValueLayout.JAVA_BYTE);
    }

    /** Returns text up to its first zero. */
    static String text(long base, Text place) {
        byte[] encoded = bytes(base + place.offset(), place.bytes());
        int length = 0;
        while (length < encoded.length && encoded[length] != 0) {
            length++;
        }
        return new String(encoded, 0, length, StandardCharsets.UTF_8);
    }

    /** Stores text, followed by zeros. Text that is too long is cut. */
    static void text(long base, Text place, String text) {
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        int length = Math.min(encoded.length, place.bytes());
        while (length < encoded.length && length > 0 && (encoded[length] & 0xc0) == 0x80) {
            length--; // The text is not cut in the middle of a character.
        }
        MemorySegment target = Words.MEMORY.asSlice(base + place.offset(), place.bytes());
        MemorySegment.copy(encoded, 0, target, ValueLayout.JAVA_BYTE, 0, length);
        target.asSlice(length).fill((byte) 0);
    }
}
