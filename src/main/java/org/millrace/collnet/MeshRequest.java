package org.millrace.collnet;

import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.element.ElementKernel;
import org.millrace.net.MemoryRegion;

/**
 * A collective that the user has requested, as the aggregators read it. The requesting thread writes the fields, and
 * then publishes them by an increment of the number of requests. The object is reused when all aggregators have
 * processed the request and its completion was reported to the user.
 *
 * <p>
 * The window of an all-gather or reduce-scatter is a range of a buffer that has a part for each rank. The window of an
 * all-reduce contains all elements that it reduces. Offsets and lengths are in bytes.
 */
final class MeshRequest {

    /** The requested function. The ordinals are part of the frame format. */
    enum Function {
        ALL_REDUCE("all-reduce"), ALL_GATHER("all-gather"), REDUCE_SCATTER("reduce-scatter");

        private final String label;

        Function(String label) {
            this.label = label;
        }
    }

    private static final int ALIGNMENT = 64;
    /**
     * Minimum size of a piece in bytes. For a shorter piece, the use of another thread would cost more time than it
     * saves.
     */
    private static final long MIN_PIECE_BYTES = 32 << 10;

    /** Number of aggregators that have not processed the request yet. */
    private final AtomicInteger remaining = new AtomicInteger();
    /**
     * Whether this object serves a request whose completion was not yet reported to the user. Used only by the
     * requesting thread.
     */
    boolean inUse;

    @Nullable
    MemoryRegion send;
    @Nullable
    MemoryRegion receive;
    @Nullable
    ElementKernel kernel;
    Function function = Function.ALL_REDUCE;
    DataType type = DataType.INT8;
    ReduceOp.BuiltIn op = ReduceOp.BuiltIn.SUM;
    long sendOffset;
    long receiveOffset;
    long windowOffset;
    long windowBytes;
    long bytesPerRank;
    long pieceBytes;

    /** Cuts the window into pieces, in the same way on every rank. */
    void cut(int ranks, int aggregators, long maxPieceBytes) {
        long longest = function == Function.REDUCE_SCATTER
                ? Math.max(ALIGNMENT, maxPieceBytes / Math.max(1, ranks - 1) / ALIGNMENT * ALIGNMENT)
                : maxPieceBytes;
        long even = roundUp((windowBytes + aggregators - 1) / aggregators);
        pieceBytes = Math.min(longest, Math.max(even, MIN_PIECE_BYTES));
        remaining.setPlain(aggregators); // The release store of the number of requests publishes all fields.
    }

    static long roundUp(long bytes) {
        return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    long pieces() {
        return (windowBytes + pieceBytes - 1) / pieceBytes;
    }

    /**
     * Records that an aggregator has done its part of the request. The decrement of {@code remaining} is also a
     * release, which pairs with the acquire in {@link #isDone}. A thread that sees the request done therefore sees
     * everything that the aggregators wrote.
     */
    void pass() {
        remaining.getAndAdd(-1);
    }

    boolean isDone() {
        return remaining.getAcquire() == 0;
    }

    /** Returns whether the sent and the received data share memory. */
    boolean isInPlace() {
        long from = send.segment().address() + sendOffset;
        long to = receive.segment().address() + receiveOffset;
        return from < to + windowBytes && to < from + windowBytes;
    }

    @Override
    public String toString() {
        return describe(function.ordinal(), type.code(), op.code(), windowOffset, windowBytes, bytesPerRank);
    }

    static String describe(long function, long type, long op, long offset, long bytes, long partBytes) {
        Function[] functions = Function.values();
        if (function < 0 || function >= functions.length || type < 0 || type >= DataType.values().length || op < 0
                || op >= ReduceOp.BuiltIn.values().length) {
            return "no request";
        }
        String what = functions[(int) function].label;
        return functions[(int) function] == Function.ALL_REDUCE
                ? what + " of " + bytes + " bytes at " + offset + ", " + DataType.ofCode((int) type).label() + ", "
                        + ReduceOp.BuiltIn.values()[(int) op].label()
                : what + " of bytes " + offset + " to " + (offset + bytes) + ", " + partBytes + " a rank"
                        + (functions[(int) function] == Function.ALL_GATHER ? ""
                                : ", " + DataType.ofCode((int) type).label() + ", "
                                        + ReduceOp.BuiltIn.values()[(int) op].label());
    }
}
