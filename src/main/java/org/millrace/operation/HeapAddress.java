package org.millrace.operation;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Addresses for operands on the Java heap that the emulated device uses in place. The collector moves such memory, but
 * the work of a kernel refers to memory by address. Each operand therefore gets a range of unused addresses for one
 * operation. A kernel replaces the range by the memory on the heap. Code that only compares addresses needs no
 * distinction. Callable from any thread.
 */
public final class HeapAddress {

    /** First address of the ranges. No processor gives addresses of this size to a process. */
    private static final long FIRST = 1L << 62;
    private static final long ALIGNMENT = 64;
    private static final AtomicLong NEXT = new AtomicLong(FIRST);
    /** Memory of each range that is in use, by the scope of the range. The range keeps its memory reachable. */
    private static final Map<MemorySegment.Scope, WeakReference<Placed>> PLACED =
            Collections.synchronizedMap(new WeakHashMap<>());

    private record Placed(long address, MemorySegment memory) {
    }

    private HeapAddress() {}

    /** {@return a new address range for memory on the heap, which is reachable as long as the range} */
    @SuppressWarnings("restricted") // the range is never accessed
    public static MemorySegment of(MemorySegment memory) {
        long bytes = memory.byteSize();
        Placed placed = new Placed(NEXT.getAndAdd(Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT), memory);
        MemorySegment range = MemorySegment.ofAddress(placed.address)
                .reinterpret(bytes, Arena.ofAuto(), _ -> Reference.reachabilityFence(placed));
        PLACED.put(range.scope(), new WeakReference<>(placed));
        return range;
    }

    /** {@return whether a segment is an address range of this class, or a part of one} */
    public static boolean isOf(@Nullable MemorySegment segment) {
        return segment != null && segment.address() >= FIRST;
    }

    /** {@return the memory on the heap if a segment is an address range of this class, otherwise the segment} */
    public static MemorySegment resolve(MemorySegment segment) {
        if (!isOf(segment)) {
            return segment;
        }
        Placed placed = PLACED.get(segment.scope()).get();
        return placed.memory.asSlice(segment.address() - placed.address, segment.byteSize());
    }
}
