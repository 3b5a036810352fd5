package org.millrace.net.socket;

/**
 * Which bytes of a payload travel on which stream: a rule of the payload's length alone, so that both ends know it
 * without a word on the wire.
 *
 * <p>
 * A payload shorter than the threshold travels on stream 0, behind its header. Any other is cut into one part per
 * stream, all of the same length, which is a multiple of {@value HeaderFormat#PART_ALIGNMENT}, but for the last, which
 * may be shorter, and those after it, which may be empty.
 *
 * @param streams how many streams there are, 1 to {@value SocketOptions#MAX_STREAMS}
 */
record Stripes(int streams, int threshold) {

    public Stripes {
        if (streams < 1 || streams > SocketOptions.MAX_STREAMS) {
            throw new IllegalArgumentException(
                    "a connection has 1 to " + SocketOptions.MAX_STREAMS + " streams, not " + streams);
        }
        if (threshold < 1) {
            throw new IllegalArgumentException("the stripe threshold is 1 byte or more, not " + threshold);
        }
    }

    boolean divides(int length) {
        return streams > 1 && length >= threshold;
    }

    /** Offset in the payload of a stream's first byte; equal to {@link #end} if the stream carries none of it. */
    int start(int length, int stream) {
        return divides(length) ? (int) Math.min((long) stream * partBytes(length), length) : stream == 0 ? 0 : length;
    }

    /** Offset in the payload behind a stream's last byte. */
    int end(int length, int stream) {
        return divides(length) ? (int) Math.min((stream + 1L) * partBytes(length), length) : length;
    }

    private int partBytes(int length) {
        int equal = (length - 1) / streams + 1;
        return equal + HeaderFormat.PART_ALIGNMENT - 1 & -HeaderFormat.PART_ALIGNMENT;
    }
}
