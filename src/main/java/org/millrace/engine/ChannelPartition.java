package org.millrace.engine;

import org.millrace.abi.CollectiveWork;

/** How an operation's elements are spread over channels. */
final class ChannelPartition {

    /** A channel is worth its steps only with this many bytes for each of a round's chunks. */
    private static final long SMALLEST_CHUNK_BYTES = 16 * 1024;
    private static final long ALIGNMENT_BYTES = 64;

    private ChannelPartition() {}

    /** How many channels are worth it, 1 or more. */
    static int channels(long bytes, int parts, int channels) {
        return Math.clamp(bytes / (parts * SMALLEST_CHUNK_BYTES), 1, channels);
    }

    /**
     * Spreads a collective: contiguous shares of nearly equal size, each beginning at a multiple of 64 bytes. None is
     * empty, unless there is nothing at all.
     *
     * @param work which will say the channels, from 0 on, and the elements of each
     */
    static void spread(CollectiveWork work, long count, int elementBytes, int parts, int channels) {
        long used = channels(count * elementBytes, parts, channels);
        long alignment = ALIGNMENT_BYTES / elementBytes;
        long share = (count + used - 1) / used;
        long aligned = (share + alignment - 1) / alignment * alignment;
        int last = count == 0 ? 0 : (int) ((count - 1) / aligned);
        work.spread(0, last, Math.min(aligned, count), last > 1 ? aligned : 0, last > 0 ? count - last * aligned : 0);
    }
}
