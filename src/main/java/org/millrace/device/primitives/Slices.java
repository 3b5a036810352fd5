package org.millrace.device.primitives;

import org.millrace.device.channel.ReceivePort;
import org.millrace.device.channel.SendPort;

/**
 * How a chunk of protocol Simple is cut into slices, by NCCL's rule, which both ends of a connection follow: a chunk
 * always takes all its slices, and those behind the data are empty.
 *
 * @param smallest elements of a slice that is not the last one with data, at the least
 */
record Slices(int perChunk, long smallest) {

    /** NCCL's unit of slicing, in elements. */
    private static final long ALIGNMENT = 16;
    /** NCCL makes no slice smaller than a full one divided by this. */
    private static final long SMALLEST_DIVISOR = 32;

    static Slices of(ReceivePort[] from, SendPort[] to, int elementBytes, int chunkSteps, int sliceSteps) {
        long slotBytes = to.length > 0 ? to[0].slotBytes() : from[0].slotBytes();
        return new Slices(chunkSteps / sliceSteps, sliceSteps * slotBytes / elementBytes / SMALLEST_DIVISOR);
    }

    /** Elements of each slice of a chunk, until there are none left. */
    long elements(long chunkElements) {
        long share = (chunkElements + ALIGNMENT * perChunk - 1) / (ALIGNMENT * perChunk) * ALIGNMENT;
        return Math.max(share, smallest);
    }
}
