package org.millrace.device.unpack;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * One warp's copy of one piece: 16 bytes at a time, in loads as wide as the offsets of both sides allow, then what is
 * left of 16 bytes one by one. Loads are aligned, as a GPU demands it: {@link IllegalArgumentException} if buffer and
 * slot are not aligned to 16 bytes.
 */
final class PieceCopy {

    private static final int UNIT = 16;

    private PieceCopy() {}

    /** The widest load for offsets: 1, 2, 4, 8 or 16 bytes. */
    static int width(int source, long target) {
        long common = (Integer.toUnsignedLong(source) | target) % UNIT;
        return common == 0 ? UNIT : (int) Long.lowestOneBit(common);
    }

    static void copy(MemorySegment bounce, int source, MemorySegment slots, long slot, long target, long length) {
        long from = Integer.toUnsignedLong(source);
        long to = slot + target;
        long whole = length / UNIT * UNIT;
        switch (width(source, target)) {
            case 16, 8 -> {
                for (long at = 0; at < whole; at += Long.BYTES) {
                    slots.set(ValueLayout.JAVA_LONG, to + at, bounce.get(ValueLayout.JAVA_LONG, from + at));
                }
            }
            case 4 -> {
                for (long at = 0; at < whole; at += Integer.BYTES) {
                    slots.set(ValueLayout.JAVA_INT, to + at, bounce.get(ValueLayout.JAVA_INT, from + at));
                }
            }
            case 2 -> {
                for (long at = 0; at < whole; at += Short.BYTES) {
                    slots.set(ValueLayout.JAVA_SHORT, to + at, bounce.get(ValueLayout.JAVA_SHORT, from + at));
                }
            }
            default -> bytes(bounce, from, slots, to, 0, whole);
        }
        bytes(bounce, from, slots, to, whole, length);
    }

    private static void bytes(MemorySegment bounce, long from, MemorySegment slots, long to, long begin, long end) {
        for (long at = begin; at < end; at++) {
            slots.set(ValueLayout.JAVA_BYTE, to + at, bounce.get(ValueLayout.JAVA_BYTE, from + at));
        }
    }
}
