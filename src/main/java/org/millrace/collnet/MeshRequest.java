package org.millrace.collnet;

import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.element.ElementKernel;
import org.millrace.net.MemoryRegion;

/**
 * A collective that was asked for, as its aggregators read it. Written by the thread that asks, before the number of
 * requests says that it is there; it is written again when all aggregators have passed it and its user knows.
 *
 * <p>
 * The functions that gather and scatter are about a window of a buffer in which each rank has a part; an all-reduce's
 * window is all that it reduces. Offsets and lengths are bytes.
 */
final class MeshRequest {

    /** What is asked for. The ordinals travel. */
    enum Function {
        ALL_REDUCE("all-reduce"), ALL_GATHER("all-gather"), REDUCE_SCATTER("reduce-scatter");

        private final String label;

        Function(String label) {
            this.label = label;
        }
    }

    private static final int ALIGNMENT = 64;
    /** A piece that is shorter is not worth another thread. */
    private static final long SHORTEST_PIECE = 32 << 10;

    /** Aggregators that have not passed the request yet. */
    private final AtomicInteger remaining = new AtomicInteger();
    /** Of the thread that asks: whether its user has not been told of the end. */
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

    /** Cuts the window, the same way on every rank. */
    void cut(int ranks, int aggregators, long longestPiece) {
        long longest = function == Function.REDUCE_SCATTER
                ? Math.max(ALIGNMENT, longestPiece / Math.max(1, ranks - 1) / ALIGNMENT * ALIGNMENT)
                : longestPiece;
        long even = roundUp((windowBytes + aggregators - 1) / aggregators);
        pieceBytes = Math.min(longest, Math.max(even, SHORTEST_PIECE));
        remaining.setPlain(aggregators); // published with the number of requests
    }

    static long roundUp(long bytes) {
        return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    long pieces() {
        return (windowBytes + pieceBytes - 1) / pieceBytes;
    }

    /** An aggregator has done what the request asks of it. Release: what it wrote is there for who sees the end. */
    void pass() {
        remaining.getAndAdd(-1);
    }

    boolean isDone() {
        return remaining.getAcquire() == 0;
    }

    /** Whether what is sent and what is received share memory. */
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
