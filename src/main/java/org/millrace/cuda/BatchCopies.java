package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;
import org.millrace.library.DynamicLoader;

/**
 * The driver's call that begins many copies at once, in no order among them: of CUDA 12.8 and newer. One object a
 * thread; no call allocates.
 */
final class BatchCopies {

    private static final String FUNCTION = "cuMemcpyBatchAsync"; // of 12.8 in newer drivers, too, which have a _v2
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    /** {@code CUmemcpyAttributes}: the order of reading, two hints that GPUs' and pinned memory need not, flags. */
    private static final long ATTRIBUTES_BYTES = 24;
    private static final int IN_STREAM_ORDER = 1; // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM

    private final CFunction function;
    /** Targets, sources, sizes, the attributes, the first copy that they are for, and which copy has failed. */
    private final MemorySegment memory;
    private final int most;

    private BatchCopies(CFunction function, int most) {
        this.function = function;
        this.most = most;
        memory = Arena.ofAuto().allocate(at(3) + ATTRIBUTES_BYTES + 2 * Long.BYTES, Long.BYTES);
        memory.set(ValueLayout.JAVA_INT, at(3), IN_STREAM_ORDER);
    }

    /**
     * Looks for the call.
     *
     * @return null if the driver is older
     */
    static @Nullable BatchCopies find(int most) {
        MemorySegment library = DynamicLoader.open(CudaDriver.NAME).handle();
        MemorySegment found = library == null ? null : DynamicLoader.find(library, FUNCTION);
        return found == null ? null : new BatchCopies(CFunction.at(found), most);
    }

    private long at(int array) {
        return array * (long) most * Long.BYTES;
    }

    /** Says what a copy is. */
    void set(int index, long to, long from, long bytes) {
        long offset = index * (long) Long.BYTES;
        memory.set(LONG, offset, to);
        memory.set(LONG, at(1) + offset, from);
        memory.set(LONG, at(2) + offset, bytes);
    }

    /**
     * Begins copies, behind all that the stream has to do.
     *
     * @param stream where; not the default one
     * @return what the driver answers; 0 if they are begun
     */
    int begin(int count, long stream) {
        long arrays = memory.address();
        long attributes = arrays + at(3);
        return (int) function.call(arrays, arrays + at(1), arrays + at(2), count, attributes,
                attributes + ATTRIBUTES_BYTES, 1L, attributes + ATTRIBUTES_BYTES + Long.BYTES, stream);
    }
}
