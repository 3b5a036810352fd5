package org.millrace.abi.kernel;

import java.lang.foreign.MemorySegment;
import org.millrace.foreign.PolledStruct;
import org.millrace.foreign.Words;

/**
 * The two counters that determine the fill level of a work FIFO.
 *
 * <pre>
 *    0          4                 128        132               256
 *    +----------+------ - - ------+----------+------ - - ------+
 *    | produced |       pad       | consumed |       pad       |
 *    +----------+------ - - ------+----------+------ - - ------+
 *      u32                          u32
 * </pre>
 *
 * <p>
 * Both counters count bytes, never decrease, and wrap at 2<sup>32</sup>. Only the difference of the counters is
 * meaningful. The difference is at most the FIFO's size. The host writes both counters. The host releases
 * {@code produced} after it has copied the items into the FIFO. This release pairs with the acquire of the device that
 * reads the items. The host releases {@code consumed} after the kernels that read the items have completed. This
 * release pairs with the acquire of the host thread that overwrites the items.
 *
 * <p>
 * NCCL stores both counters in {@code ncclComm}, which only the host can access. Millrace stores them in separate
 * memory, so that a kernel can check that its work items have not been overwritten.
 */
public final class WorkFifoCounters extends PolledStruct {
    /** Size of both counters in bytes. Each counter has its own pair of cache lines. */
    public static final long BYTES = 256;
    /** Alignment of the counters in bytes. */
    public static final long ALIGNMENT = 128;

    private static final long PRODUCED = 0;
    private static final long CONSUMED = 128;

    private WorkFifoCounters(MemorySegment segment) {
        super("the work FIFO's counters", segment, BYTES, ALIGNMENT);
    }

    /** {@return a view of a FIFO's counters of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static WorkFifoCounters of(MemorySegment segment) {
        return new WorkFifoCounters(segment);
    }

    /**
     * {@return the total number of bytes that were put into the FIFO; the content of these bytes is visible after this
     * acquire}
     */
    public int producedAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + PRODUCED);
    }

    /** Sets the total number of bytes that were put into the FIFO, and publishes the items that were copied before. */
    public void producedRelease(int bytes) {
        Words.INT.setRelease(Words.MEMORY, base + PRODUCED, bytes);
    }

    /**
     * {@return the total number of bytes that kernels no longer need; the space of these bytes may be overwritten after
     * this acquire}
     */
    public int consumedAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + CONSUMED);
    }

    /** Sets the total number of bytes that kernels no longer need. */
    public void consumedRelease(int bytes) {
        Words.INT.setRelease(Words.MEMORY, base + CONSUMED, bytes);
    }
}
