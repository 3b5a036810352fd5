package org.millrace.proxy;

import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;

/**
 * What one channel's part of an operation asks of a network that reduces: each of its steps is a request, for a window
 * of the operation's buffer: of what all ranks' parts are one behind the other, where each has one. Offsets and lengths
 * are bytes.
 *
 * @param operation    an all-reduce, an all-gather or a reduce-scatter
 * @param first        where the channel's part begins
 * @param windowBytes  of each step but the last, whole elements
 * @param bytesPerRank length of each rank's part; 0 of an all-reduce
 */
public record CollNetOp(Operation operation, DataType type, ReduceOp.BuiltIn op, long first, long bytes,
        long windowBytes, long bytesPerRank) {

    /** {@return where a step's window begins} */
    public long windowOffset(long step) {
        return first + step * windowBytes;
    }

    /** {@return how long a step's window is} */
    public long windowBytes(long step) {
        return Math.min(windowBytes, bytes - step * windowBytes);
    }

    /** {@return how much of a step's window is a rank's own} */
    public long ownBytes(long step, int rank) {
        long begin = Math.max(windowOffset(step), rank * bytesPerRank);
        long end = Math.min(windowOffset(step) + windowBytes(step), (rank + 1) * bytesPerRank);
        return Math.max(0, end - begin);
    }
}
