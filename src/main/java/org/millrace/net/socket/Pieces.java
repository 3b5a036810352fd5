package org.millrace.net.socket;

/**
 * Sizes and limits by which payloads are divided into pieces. Both ends derive them from the hello. Over several
 * streams, all pieces of a payload have the same length, except for the last piece. The receiver acknowledges each of
 * these pieces on arrival, and the sender computes the speed of the streams from the acknowledgements. Over one stream
 * a payload is one piece. Acknowledgements are rare in this case, because they only show which data the sender need not
 * keep any longer.
 *
 * @param bytes             length of a piece
 * @param unaccepted        maximum number of pieces that are in flight and belong to frames without a destination. The
 *                          receiver reserves memory for these pieces, so that they do not block older pieces
 * @param inFlight          maximum number of frames at the sender that are not released. The owner must not change a
 *                          frame's memory before its release
 * @param window            maximum number of frames that the sender has in flight or keeps
 * @param stagedBytes       maximum number of copied bytes that the sender keeps for each stream
 * @param acknowledgedAfter maximum number of pieces that arrive on a stream before the receiver acknowledges them
 * @param acknowledgedBytes maximum number of bytes that arrive on a stream before the receiver acknowledges them. This
 *                          limit plus the longest copied payload is less than {@code stagedBytes}. Otherwise the sender
 *                          could wait, with a full staging buffer, for an acknowledgement that the receiver does not
 *                          send
 */
record Pieces(int bytes, int unaccepted, int inFlight, int window, int stagedBytes, int acknowledgedAfter,
        int acknowledgedBytes) {

    private static final int LARGEST_BYTES = 1 << 20;
    /**
     * Number by which {@code unaccepted} exceeds {@code inFlight}. This number of pieces of 128 KiB occupies 4 MiB. A
     * network of 400 Gb/s delivers 4 MiB in 80 us.
     */
    private static final int UNACCEPTED = 32;
    /**
     * Bytes of a staging buffer: room for two of the longest copied payloads, and for unused bytes at the buffer's end.
     */
    private static final int STAGED_BYTES = 192 << 10;

    /**
     * Number of frames that a sender with one stream can always keep. With a smaller number, two threads that share a
     * core wait for each other more often. With 256, a frame of 8 bytes took five times as long as with 1024.
     * {@link #KEPT_BYTES} is the length of the sender's staging buffer. A frame that does not fit into the free part of
     * this buffer needs two writes. Over loopback, frames of 7 KiB were three times as fast with 1 MiB as with 512 KiB.
     */
    private static final int KEPT_FRAMES = 1024;
    private static final int ACKNOWLEDGED_AFTER = 64;
    private static final int ACKNOWLEDGED_BYTES = 256 << 10;
    private static final int KEPT_BYTES = 1 << 20;

    /** Returns the sizes and limits for a connection of several streams. */
    static Pieces of(int threshold, int framesInFlight) {
        int half = Math.clamp(threshold / 2, 1, LARGEST_BYTES);
        return new Pieces(half + HeaderFormat.PART_ALIGNMENT - 1 & -HeaderFormat.PART_ALIGNMENT,
                framesInFlight + UNACCEPTED, framesInFlight, framesInFlight, STAGED_BYTES, 1, 1);
    }

    /** Returns the sizes and limits for a connection of one stream. */
    static Pieces whole(int framesInFlight) {
        int window = Math.max(KEPT_FRAMES, 2 * framesInFlight);
        return new Pieces(HeaderFormat.MAX_PAYLOAD_BYTES, Integer.MAX_VALUE, framesInFlight, window, KEPT_BYTES,
                ACKNOWLEDGED_AFTER, ACKNOWLEDGED_BYTES);
    }

    /** Returns the sizes and limits for a connection with the given number of streams. */
    static Pieces over(int streams, int threshold, int framesInFlight) {
        return streams == 1 ? whole(framesInFlight) : of(threshold, framesInFlight);
    }

    /** Returns whether each payload is one piece. All pieces then arrive in the order of their frames. */
    boolean isWhole() {
        return unaccepted == Integer.MAX_VALUE;
    }

    /** Returns the number of pieces of a payload. An empty payload has one empty piece. */
    int count(int payload) {
        return payload <= bytes ? 1 : (payload - 1) / bytes + 1;
    }

    int offset(int piece) {
        return piece * bytes;
    }

    int length(int payload, int piece) {
        return Math.min(payload - piece * bytes, bytes);
    }
}
