package org.millrace.bench.ring;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.millrace.abi.kernel.WorkFifoCounters;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;
import org.millrace.device.WorkFifo;

/**
 * Work items through a FIFO, one at a time. The host stores an item. The device copies it out and acknowledges it.
 * {@code work.c} has the same loops. NCCL's device acknowledges by completing a kernel. Here a word replaces that.
 *
 * <pre>
 *   0            4096                     4480
 *   +------------+------------------------+----------------+
 *   | items      | WorkFifoCounters       | acknowledged   |
 *   +------------+------------------------+----------------+
 *   by host        by host                  by device
 * </pre>
 */
public final class WorkLoops {

    /** Size of an item in bytes: a collective of NCCL 2.28 and 2.29. */
    public static final int ITEM_BYTES = 96;

    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    private static final int TIMEOUT = 2_000_000_000;
    private static final int RING_BYTES = 4096;
    private static final long ACKNOWLEDGED = RING_BYTES + WorkFifoCounters.BYTES + 128;

    private final MemorySegment memory = Arena.global().allocate(2L * RING_BYTES, RING_BYTES);

    /** Creates an empty FIFO. */
    public WorkLoops() {}

    private WorkFifoCounters counters() {
        return WorkFifoCounters.of(memory.asSlice(RING_BYTES, WorkFifoCounters.BYTES));
    }

    /** {@return Java's host} */
    public Loop host() {
        return new Host(memory, new WorkFifo(memory.asSlice(0, RING_BYTES), counters(), 0));
    }

    /** {@return Java's device} */
    public Loop device() {
        return new Device(memory, counters());
    }

    /**
     * Returns C's host or device.
     *
     * @param symbol {@code work_put} or {@code work_take}
     * @param c      the comparators
     * @return the loop
     */
    public Loop ofC(String symbol, CLibrary c) {
        MemorySegment item = Arena.global().allocate(ITEM_BYTES, 16);
        return c.loop(symbol, memory, Arena.global()
                .allocateFrom(ValueLayout.JAVA_LONG, RING_BYTES, ITEM_BYTES, RING_BYTES, ACKNOWLEDGED, item.address()));
    }

    private record Host(MemorySegment memory, WorkFifo fifo, MemorySegment item) implements Loop {

        Host(MemorySegment memory, WorkFifo fifo) {
            this(memory, fifo, Arena.global().allocate(ITEM_BYTES, 16));
        }

        @Override
        public long run(long count) {
            for (long i = 0; i < count; i++) {
                fifo.put(item);
                if (!awaitAcknowledged(fifo.produced())) {
                    return LOST;
                }
                fifo.consume(fifo.produced());
            }
            return count;
        }

        private boolean awaitAcknowledged(int position) {
            for (int i = 0; i < TIMEOUT; i++) {
                // acquire: pairs with the device's release, after which the item that it read may be overwritten
                if ((int) INT.getAcquire(memory, ACKNOWLEDGED) - position >= 0) {
                    return true;
                }
                Thread.onSpinWait();
            }
            return false;
        }
    }

    private record Device(MemorySegment memory, WorkFifoCounters counters, MemorySegment item) implements Loop {

        Device(MemorySegment memory, WorkFifoCounters counters) {
            this(memory, counters, Arena.global().allocate(ITEM_BYTES, 16));
        }

        @Override
        public long run(long count) {
            int taken = (int) INT.get(memory, ACKNOWLEDGED);
            for (long i = 0; i < count; i++) {
                if (!awaitProduced(taken + ITEM_BYTES)) {
                    return LOST;
                }
                for (int at = 0; at < ITEM_BYTES; at += Long.BYTES) {
                    item.set(ValueLayout.JAVA_LONG, at, memory.get(ValueLayout.JAVA_LONG, taken + at & RING_BYTES - 1));
                }
                taken += ITEM_BYTES;
                // release: pairs with the host's acquire
                INT.setRelease(memory, ACKNOWLEDGED, taken);
            }
            return count;
        }

        private boolean awaitProduced(int position) {
            for (int i = 0; i < TIMEOUT; i++) {
                // acquire: pairs with the host's release of produced; the item can be read
                if (counters.producedAcquire() - position >= 0) {
                    return true;
                }
                Thread.onSpinWait();
            }
            return false;
        }
    }
}
