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
 * operation. A kernel replaces the range by the memory on the heap. Code that only compares addresses treats a range
 * like native memory. Callable from any thread.
 */
public final class HeapAddress {

    /** First address of the ranges. No process can have memory at this address or above. */
    private static final long FIRST = 1L << 62;
    private static final long ALIGNMENT = 64;
    private static final AtomicLong NEXT = new AtomicLong(FIRST);
    /** For the scope of each range in use, its memory. The range, and not this map, keeps the memory reachable. */
    private static final Map<MemorySegment.Scope, WeakReference<Placed>> PLACED =
            Collections.synchronizedMap(new WeakHashMap<>());

    private static final class Placed {

        final long address;
        /** Memory on the heap; null after the release. */
        volatile @Nullable MemorySegment memory;

        Placed(long address, MemorySegment memory) {
            this.address = address;
            this.memory = memory;
        }
    }

    private HeapAddress() {}

    /**
     * {@return a new address range for memory on the heap} The memory stays reachable until {@link #release} is called
     * or the range becomes unreachable.
     */
    @SuppressWarnings("restricted") // no access: the segment only represents addresses
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
        MemorySegment memory = placed.memory;
        if (memory == null) {
            throw new IllegalStateException("an operation on memory of the heap has ended and cannot access it");
        }
        return memory.asSlice(segment.address() - placed.address, segment.byteSize());
    }

    /**
     * Releases the memory of a range after its operation, so that the collector can free the memory. Without the
     * release, the memory would stay reachable until the collector's cleaner has handled the range. Until then, the
     * heap might have no room for the program's next array. Does nothing for other segments.
     */
    public static void release(@Nullable MemorySegment range) {
        if (isOf(range)) {
            PLACED.get(range.scope()).get().memory = null;
            Reference.reachabilityFence(range);
        }
    }
}
