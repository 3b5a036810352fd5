package org.millrace.device.arithmetic;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Runs an operation's loops over a slice, block by block, so that a second pass finds its data in the first level of
 * the cache.
 *
 * @param pre  what happens to this rank's elements when they are only copied; null for nothing
 * @param op   what joins this rank's elements and the received ones
 * @param post what happens to the last result; null for nothing
 */
record BlockwiseKernel(int elementBytes, @Nullable Loop pre, Loop op, @Nullable Loop post,
        long scalar) implements ElementKernel {

    @Override
    public boolean hasPreOp() {
        return pre != null;
    }

    @Override
    public void copy(MemorySegment input, long inputOffset, MemorySegment destination, long destinationOffset,
            long count) {
        long bytes = bytes(count);
        Objects.checkFromIndexSize(inputOffset, bytes, input.byteSize());
        Objects.checkFromIndexSize(destinationOffset, bytes, destination.byteSize());
        if (pre == null) {
            MemorySegment.copy(input, inputOffset, destination, destinationOffset, bytes);
            return;
        }
        for (long done = 0; done < bytes; done += Loop.BLOCK_BYTES) {
            long from = inputOffset + done;
            pre.run(input, from, input, from, destination, destinationOffset + done, block(bytes - done), scalar);
        }
    }

    @Override
    public void reduce(MemorySegment input, long inputOffset, MemorySegment received, long receivedOffset,
            MemorySegment destination, long destinationOffset, long count, boolean last) {
        long bytes = bytes(count);
        Objects.checkFromIndexSize(inputOffset, bytes, input.byteSize());
        Objects.checkFromIndexSize(receivedOffset, bytes, received.byteSize());
        Objects.checkFromIndexSize(destinationOffset, bytes, destination.byteSize());
        @Nullable
        Loop end = last ? post : null;
        for (long done = 0; done < bytes; done += Loop.BLOCK_BYTES) {
            int elements = block(bytes - done);
            long to = destinationOffset + done;
            op.run(input, inputOffset + done, received, receivedOffset + done, destination, to, elements, scalar);
            if (end != null) {
                end.run(destination, to, destination, to, destination, to, elements, scalar);
            }
        }
    }

    private long bytes(long count) {
        return Objects.checkFromIndexSize(0, count, Long.MAX_VALUE / elementBytes) + count * elementBytes;
    }

    private int block(long bytesLeft) {
        return (int) Math.min(bytesLeft, Loop.BLOCK_BYTES) / elementBytes;
    }
}
