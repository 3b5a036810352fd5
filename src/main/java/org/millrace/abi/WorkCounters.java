package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclDevProfiler;
import org.millrace.ffi.device.ncclDevProfilerSlot;

/**
 * {@code ncclDevProfiler}: when a channel's work began, or when it was complete; one for each.
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
 * Work number {@code n}, from 1 on, lies in slot {@code n % 64}. The kernel stores the time, then releases the number;
 * a host that reads the number with acquire sees the time of this work, or, if the slot was taken again meanwhile, that
 * of a later one: it reads the number once more behind the time. Facts: NCCL 2.28 {@code device.h},
 * {@code device/common.h}.
 */
public final class WorkCounters extends PolledStruct {
    public static final long BYTES = ncclDevProfiler.sizeof();
    /** Work that is remembered. */
    public static final int SLOTS = device_h.MAX_PROFILER_EVENTS_PER_CHANNEL();

    private static final long SLOT_BYTES = ncclDevProfilerSlot.sizeof();
    private static final long COUNTER = ncclDevProfilerSlot.layout().byteOffset(groupElement("counter"));
    private static final long TIMESTAMP = ncclDevProfilerSlot.layout().byteOffset(groupElement("timestamp"));

    private WorkCounters(MemorySegment segment) {
        super("ncclDevProfiler", segment, BYTES, Long.BYTES);
    }

    /** {@return a view of a channel's counters of exactly {@link #BYTES} bytes, aligned to 8} */
    public static WorkCounters of(MemorySegment segment) {
        return new WorkCounters(segment);
    }

    /** Notes a work; called by the kernel. */
    public void note(long number, long timestamp) {
        long slot = slot(number);
        // Each release keeps the stores before it: a reader that finds the same number before and behind the time has
        // the time of that number.
        Words.LONG.setRelease(Words.MEMORY, base + slot + COUNTER, 0L);
        Words.LONG.setRelease(Words.MEMORY, base + slot + TIMESTAMP, timestamp);
        Words.LONG.setRelease(Words.MEMORY, base + slot + COUNTER, number);
    }

    /**
     * {@return when a work was noted; -1 if it was not yet, or if later work has its slot}
     *
     * @param number of the work, 1 or more
     */
    public long timestamp(long number) {
        long slot = slot(number);
        if ((long) Words.LONG.getAcquire(Words.MEMORY, base + slot + COUNTER) != number) {
            return -1;
        }
        long timestamp = (long) Words.LONG.getAcquire(Words.MEMORY, base + slot + TIMESTAMP);
        return (long) Words.LONG.getAcquire(Words.MEMORY, base + slot + COUNTER) == number ? timestamp : -1;
    }

    /** {@return the number of the last work that was noted; 0 if there was none} */
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
