package org.millrace.net.plugin;

/**
 * What the two ends of a connection have agreed on: the smaller of what each can do.
 *
 * @param inlineBytes the longest payload that goes with its header
 * @param pieceBytes  the longest message of any other payload
 * @param maxRecvs    buffers of one receive at the most
 * @param kinds       of memory: bits {@code NCCL_PTR_...}
 */
record FrameSizes(int inlineBytes, long pieceBytes, int maxRecvs, int kinds) {

    /** Frames under way on a connection, on either side. */
    static final int FRAMES_IN_FLIGHT = 16;

    private static final int CACHE_LINE = 64;

    public FrameSizes min(FrameSizes other) {
        return new FrameSizes(Math.min(inlineBytes, other.inlineBytes), Math.min(pieceBytes, other.pieceBytes),
                Math.min(maxRecvs, other.maxRecvs), kinds & other.kinds);
    }

    /** Whether the numbers make sense. */
    public boolean isPlausible(int mostRecvs) {
        return inlineBytes >= 0 && inlineBytes <= 1 << 20 && pieceBytes >= 1
                && pieceBytes <= MessageFormat.MAX_PAYLOAD_BYTES && maxRecvs >= 1 && maxRecvs <= mostRecvs;
    }

    /** Room for one message of a frame. */
    int messageBytes() {
        return (MessageFormat.HEADER_BYTES + inlineBytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    }
}
