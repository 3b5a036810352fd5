package org.millrace.net.plugin;

/**
 * Limits of a connection. The two ends use the smaller value of each limit, and the kinds of memory that both sides
 * support.
 *
 * @param inlineBytes maximum length of a payload that is sent in the same message as its header
 * @param pieceBytes  maximum length of a piece; each piece of a longer payload is sent in its own message
 * @param maxRecvs    maximum number of buffers of one receive
 * @param kinds       supported kinds of memory: bits {@code NCCL_PTR_...}
 */
record FrameSizes(int inlineBytes, long pieceBytes, int maxRecvs, int kinds) {

    /** Maximum number of frames in flight at each end of a connection. */
    static final int FRAMES_IN_FLIGHT = 16;

    private static final int CACHE_LINE = 64;

    public FrameSizes min(FrameSizes other) {
        return new FrameSizes(Math.min(inlineBytes, other.inlineBytes), Math.min(pieceBytes, other.pieceBytes),
                Math.min(maxRecvs, other.maxRecvs), kinds & other.kinds);
    }

    /** Returns whether the limits are valid. */
    public boolean isPlausible(int mostRecvs) {
        return inlineBytes >= 0 && inlineBytes <= 1 << 20 && pieceBytes >= 1
                && pieceBytes <= MessageFormat.MAX_PAYLOAD_BYTES && maxRecvs >= 1 && maxRecvs <= mostRecvs;
    }

    /** Returns the maximum length in bytes of a message with a header, as a multiple of a cache line. */
    int messageBytes() {
        return (MessageFormat.HEADER_BYTES + inlineBytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    }
}
