package org.millrace.net.socket;

/**
 * Division of payloads into pieces, known to both ends from the hello. Over several streams, payloads are cut into
 * pieces of one size, except for a frame's last piece. Each piece is acknowledged on arrival, which shows the streams'
 * speed. Over one stream a payload is one piece, and acknowledgements are rare: they only show which data need not be
 * kept for a lost stream.
 *
 * @param bytes             size of a piece
 * @param unaccepted        maximum number of pieces in flight without a destination for their frame. The receiver
 *                          reserves room for them, so that none blocks an older piece
 * @param inFlight          maximum number of frames that occupy the owner's memory at the sender
 * @param window            maximum number of frames that the sender has in flight or keeps
 * @param stagedBytes       maximum number of copied bytes that the sender keeps for each stream
 * @param acknowledgedAfter maximum number of pieces that a stream carries without an acknowledgement
 * @param acknowledgedBytes the same in bytes. Together with one more piece it is less than {@code stagedBytes}, so that
 *                          the sender never waits for an acknowledgement that does not arrive
 */
record Pieces(int bytes, int unaccepted, int inFlight, int window, int stagedBytes, int acknowledgedAfter,
        int acknowledgedBytes) {

    private static final int LARGEST_BYTES = 1 << 20;
    /** With 128 KiB each, these are 4 MiB: the amount that 400 Gb/s deliver in 80 us. */
    private static final int UNACCEPTED = 32;
    /** Room for two of the largest copied payloads, and the gap at the end. */
    private static final int STAGED_BYTES = 192 << 10;

    /**
     * Over one stream: minimum number of frames that the sender keeps, and the bytes of small ones among them. With few
     * frames, two threads that share a core wait for each other more often: 8 bytes took five times as long with 256.
     * Frames that are not kept take two writes: 7 KiB reached a third of the speed over loopback with 512 KiB.
     */
    private static final int KEPT_FRAMES = 1024;
    private static final int ACKNOWLEDGED_AFTER = 64;
    private static final int ACKNOWLEDGED_BYTES = 256 << 10;
    private static final int KEPT_BYTES = 1 << 20;

    /** Returns the rule for a connection of several streams. */
    static Pieces of(int threshold, int framesInFlight) {
        int half = Math.clamp(threshold / 2, 1, LARGEST_BYTES);
        return new Pieces(half + HeaderFormat.PART_ALIGNMENT - 1 & -HeaderFormat.PART_ALIGNMENT,
                framesInFlight + UNACCEPTED, framesInFlight, framesInFlight, STAGED_BYTES, 1, 1);
    }

    /** Returns the rule for a connection of one stream. */
    static Pieces whole(int framesInFlight) {
        int window = Math.max(KEPT_FRAMES, 2 * framesInFlight);
        return new Pieces(HeaderFormat.MAX_PAYLOAD_BYTES, Integer.MAX_VALUE, framesInFlight, window, KEPT_BYTES,
                ACKNOWLEDGED_AFTER, ACKNOWLEDGED_BYTES);
    }

    /** Returns the rule for a connection with a number of streams. */
    static Pieces over(int streams, int threshold, int framesInFlight) {
        return streams == 1 ? whole(framesInFlight) : of(threshold, framesInFlight);
    }

    /** Returns whether each payload is one piece, and all pieces arrive in order. */
    boolean isWhole() {
        return unaccepted == Integer.MAX_VALUE;
    }

    /** Returns the number of a payload's pieces; an empty payload has one empty piece. */
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
