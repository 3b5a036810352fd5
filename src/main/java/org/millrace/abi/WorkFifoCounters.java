package org.millrace.abi;

import java.lang.foreign.MemorySegment;

/**
 * The fill level of a work FIFO.
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
 * Both counters count bytes, never decrease, and wrap at 2<sup>32</sup>. Only their difference is meaningful. It is at
 * most the FIFO's size. The host writes both. A release of {@code produced} follows the copy of the items and pairs
 * with the acquire of the device that reads them. A release of {@code consumed} follows the completion of the kernels
 * that read the items. It pairs with the acquire of the host that overwrites them.
 *
 * <p>
 * NCCL keeps both counters in {@code ncclComm}, where only its host side sees them. Here they lie in separate memory,
 * so that a kernel can check that its work is still present.
 */
public final class WorkFifoCounters extends PolledStruct {
    /** Bytes of both counters, each in its own pair of cache lines. */
    public static final long BYTES = 256;
    /** Alignment of the counters. */
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

    /** {@return the total number of bytes ever put into the FIFO; their content is visible after this acquire} */
    public int producedAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + PRODUCED);
    }

    /** Publishes the items that were copied. */
    public void producedRelease(int bytes) {
        Words.INT.setRelease(Words.MEMORY, base + PRODUCED, bytes);
    }

    /** {@return the total number of bytes that all kernels have finished reading} */
    public int consumedAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + CONSUMED);
    }

    /** Releases the bytes that kernels have read. */
    public void consumedRelease(int bytes) {
        Words.INT.setRelease(Words.MEMORY, base + CONSUMED, bytes);
    }
}
