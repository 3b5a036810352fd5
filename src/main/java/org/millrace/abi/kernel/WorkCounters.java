package org.millrace.abi.kernel;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevProfiler;
import org.millrace.ffi.device.ncclDevProfilerSlot;
import org.millrace.foreign.PolledStruct;
import org.millrace.foreign.Words;

/**
 * {@code ncclDevProfiler}: the times at which a channel's work items started, or completed. Each channel has two such
 * structs: one for the starts and one for the completions.
 *
 * <pre>
 *    0          8           16                                1024
 *    +----------+-----------+---------- - - - - - ------------+
 *    | counter  | timestamp |       slots 1 to 63             |
 *    +----------+-----------+---------- - - - - - ------------+
 *      u64        u64
 * </pre>
 *
 * <p>
 * Work item number {@code n}, counted from 1, uses slot {@code n % 64}. The kernel stores the time and then stores the
 * number with release. A host that reads the number with acquire then sees the time of this work item. If a later work
 * item reuses the slot during these reads, the host may see the later item's time. The host therefore reads the number
 * again after it has read the time. Facts: NCCL 2.28 {@code device.h}, {@code device/common.h}.
 */
public final class WorkCounters extends PolledStruct {
    public static final long BYTES = ncclDevProfiler.sizeof();
    /** Number of work items with recorded times; older times are overwritten. */
    public static final int SLOTS = device_h.MAX_PROFILER_EVENTS_PER_CHANNEL();

    private static final long SLOT_BYTES = ncclDevProfilerSlot.sizeof();
    private static final long COUNTER = ncclDevProfilerSlot.layout().byteOffset(groupElement("counter"));
    private static final long TIMESTAMP = ncclDevProfilerSlot.layout().byteOffset(groupElement("timestamp"));

    private WorkCounters(MemorySegment segment) {
        super("ncclDevProfiler", segment, BYTES, Long.BYTES);
    }

    /** {@return a view of the counters of one channel, in exactly {@link #BYTES} bytes, aligned to 8 bytes} */
    public static WorkCounters of(MemorySegment segment) {
        return new WorkCounters(segment);
    }

    /**
     * Records the time of a work item. Called by the kernel.
     *
     * @param number number of the work item, 1 or more
     */
    public void note(long number, long timestamp) {
        long slot = slot(number);
        // The releases keep the three stores in this order for a reader. A reader reads the number before and after the
        // time. If both reads return the same work item's number, the time belongs to this work item.
        Words.LONG.setRelease(Words.MEMORY, base + slot + COUNTER, 0L);
        Words.LONG.setRelease(Words.MEMORY, base + slot + TIMESTAMP, timestamp);
        Words.LONG.setRelease(Words.MEMORY, base + slot + COUNTER, number);
    }

    /**
     * {@return the recorded time of a work item; -1 if no time is recorded yet, or if a later work item has overwritten
     * it}
     *
     * @param number number of the work item, 1 or more
     */
    public long timestamp(long number) {
        long slot = slot(number);
        if ((long) Words.LONG.getAcquire(Words.MEMORY, base + slot + COUNTER) != number) {
            return -1;
        }
        long timestamp = (long) Words.LONG.getAcquire(Words.MEMORY, base + slot + TIMESTAMP);
        return (long) Words.LONG.getAcquire(Words.MEMORY, base + slot + COUNTER) == number ? timestamp : -1;
    }

    /** {@return the number of the last recorded work item; 0 before the first} */
    public long latest() {
        long latest = 0;
        for (long slot = 0; slot < SLOTS; slot++) {
            latest = Math.max(latest, (long) Words.LONG.getAcquire(Words.MEMORY, base + slot * SLOT_BYTES + COUNTER));
        }
        return latest;
    }

    private static long slot(long number) {
        return (number & SLOTS - 1) * SLOT_BYTES;
    }
}
