package org.millrace.abi;

import java.lang.foreign.MemorySegment;

/**
 * How far a work FIFO is filled and emptied.
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
 * Both count bytes, never fall, and wrap at 2<sup>32</sup>: only their difference means something, which is at most the
 * FIFO's size. The host writes both. A release of {@code produced} follows the copy of the items and pairs with the
 * acquire of the device that reads them; a release of {@code consumed} follows the completion of the kernels that read
 * them and pairs with the acquire of the host that overwrites them.
 *
 * <p>
 * NCCL keeps them in {@code ncclComm}, where only its host side sees them; here they lie apart, so that a kernel can
 * check that its work is still there.
 */
public final class WorkFifoCounters extends PolledStruct {
    /** Bytes of both, each in a pair of cache lines of its own. */
    public static final long BYTES = 256;
    /** Their alignment. */
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

    /** {@return bytes that were ever put in; what they hold is there} */
    public int producedAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + PRODUCED);
    }

    /** Hands over what was copied. */
    public void producedRelease(int bytes) {
        Words.INT.setRelease(Words.MEMORY, base + PRODUCED, bytes);
    }

    /** {@return bytes that no kernel reads any more} */
    public int consumedAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + CONSUMED);
    }

    /** Gives back what kernels have read. */
    public void consumedRelease(int bytes) {
        Words.INT.setRelease(Words.MEMORY, base + CONSUMED, bytes);
    }
}
