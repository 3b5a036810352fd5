package org.millrace.net.plugin;

/**
 * Values agreed by the two ends of a connection: the smaller of both sides' limits.
 *
 * @param inlineBytes maximum length of a payload that follows its header in the message
 * @param pieceBytes  maximum length of a message of any other payload
 * @param maxRecvs    maximum number of buffers of one receive
 * @param kinds       supported kinds of memory: bits {@code NCCL_PTR_...}
 */
record FrameSizes(int inlineBytes, long pieceBytes, int maxRecvs, int kinds) {

    /** Maximum number of frames in flight on a connection, on either side. */
    static final int FRAMES_IN_FLIGHT = 16;

    private static final int CACHE_LINE = 64;

    public FrameSizes min(FrameSizes other) {
        return new FrameSizes(Math.min(inlineBytes, other.inlineBytes), Math.min(pieceBytes, other.pieceBytes),
                Math.min(maxRecvs, other.maxRecvs), kinds & other.kinds);
    }

    /** Returns whether the numbers are valid. */
    public boolean isPlausible(int mostRecvs) {
        return inlineBytes >= 0 && inlineBytes <= 1 << 20 && pieceBytes >= 1
                && pieceBytes <= MessageFormat.MAX_PAYLOAD_BYTES && maxRecvs >= 1 && maxRecvs <= mostRecvs;
    }

    /** Returns the maximum length of a frame's message, in bytes. */
    int messageBytes() {
        return (MessageFormat.HEADER_BYTES + inlineBytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    }
}
