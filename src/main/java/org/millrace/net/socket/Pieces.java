package org.millrace.net.socket;

/**
 * How payloads travel on a connection, which both ends know from the hello. Over several streams they are cut into
 * pieces of one size, but for a frame's last, and each piece is acknowledged as it comes, which tells how fast the
 * streams are. Over one stream a payload is one piece, and acknowledgements are few: they only tell what need not be
 * kept any longer for the case that the stream is lost.
 *
 * @param bytes             of a piece
 * @param unaccepted        how many pieces may be under way whose frames have no destination yet: the receiver keeps
 *                          room for them, so that none of them ever stands in the way of an older one
 * @param inFlight          frames whose memory the sender has not given back, at most
 * @param window            frames that the sender has under way or keeps, at most
 * @param stagedBytes       what the sender keeps of each stream's copied bytes, at most
 * @param acknowledgedAfter how many pieces a stream brings without an acknowledgement, at most
 * @param acknowledgedBytes the same in bytes: that and one more is less than what is staged, so that the sender never
 *                          waits for an acknowledgement that does not come
 */
record Pieces(int bytes, int unaccepted, int inFlight, int window, int stagedBytes, int acknowledgedAfter,
        int acknowledgedBytes) {

    private static final int LARGEST_BYTES = 1 << 20;
    /** Of 128 KiB each, these are 4 MiB: what 400 Gb/s deliver in 80 us. */
    private static final int UNACCEPTED = 32;
    /** Two of the largest that are copied, and the gap at the end. */
    private static final int STAGED_BYTES = 192 << 10;

    /**
     * Over one stream: frames that the sender keeps, at least, and the bytes of small ones among them. With few, two
     * threads that share a core wait for each other more often: 8 bytes took five times as long with 256. What is not
     * kept takes two writes: 7 KiB went a third as fast over loopback with 512 KiB.
     */
    private static final int KEPT_FRAMES = 1024;
    private static final int ACKNOWLEDGED_AFTER = 64;
    private static final int ACKNOWLEDGED_BYTES = 256 << 10;
    private static final int KEPT_BYTES = 1 << 20;

    /** The rule for a connection of several streams with this threshold and so many frames in flight. */
    static Pieces of(int threshold, int framesInFlight) {
        int half = Math.clamp(threshold / 2, 1, LARGEST_BYTES);
        return new Pieces(half + HeaderFormat.PART_ALIGNMENT - 1 & -HeaderFormat.PART_ALIGNMENT,
                framesInFlight + UNACCEPTED, framesInFlight, framesInFlight, STAGED_BYTES, 1, 1);
    }

    /** The rule for a connection of one stream. */
    static Pieces whole(int framesInFlight) {
        int window = Math.max(KEPT_FRAMES, 2 * framesInFlight);
        return new Pieces(HeaderFormat.MAX_PAYLOAD_BYTES, Integer.MAX_VALUE, framesInFlight, window, KEPT_BYTES,
                ACKNOWLEDGED_AFTER, ACKNOWLEDGED_BYTES);
    }

    /** The rule for a connection of so many streams. */
    static Pieces over(int streams, int threshold, int framesInFlight) {
        return streams == 1 ? whole(framesInFlight) : of(threshold, framesInFlight);
    }

    /** Whether each payload is one piece, and all come in their order. */
    boolean isWhole() {
        return unaccepted == Integer.MAX_VALUE;
    }

    /** How many pieces a payload has; an empty one has an empty piece. */
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
