package org.millrace.nccl;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import org.millrace.DataType;
import org.millrace.element.Elements;

/** A number in the representation of an element type. */
final class Scalars {

    private Scalars() {}

    /**
     * Rounds to nearest, ties to even, and too large a number to infinity, or to the largest in the 8-bit types, as
     * CUDA does; for an integer type cuts off towards zero and stays within its range.
     */
    static MemorySegment write(double value, DataType type, SegmentAllocator allocator) {
        MemorySegment scalar = allocator.allocate(Long.BYTES, Long.BYTES);
        Elements.setBits(type, scalar, 0, switch (type) {
            case INT8 -> Math.clamp((long) value, Byte.MIN_VALUE, Byte.MAX_VALUE);
            case UINT8 -> Math.clamp((long) value, 0, 0xff);
            case INT32 -> (int) value;
            case UINT32 -> Math.clamp((long) value, 0L, 0xffff_ffffL);
            case INT64 -> (long) value;
            case UINT64 -> unsignedLong(value);
            case FLOAT16, FLOAT32, FLOAT64, BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2 -> Elements.bits(type, value);
        });
        return scalar;
    }

    private static long unsignedLong(double value) {
        double half = 0x1p63;
        if (!(value > 0)) {
            return 0;
        }
        return value < half ? (long) value : value >= 2 * half ? -1L : (long) (value - half) | Long.MIN_VALUE;
    }
}
