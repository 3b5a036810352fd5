package org.millrace.net.socket;

/**
 * How payloads are cut on a connection of several rails, which both ends know from the hello: into pieces of one size,
 * but for a frame's last.
 *
 * @param bytes      of a piece
 * @param unaccepted how many pieces may be under way whose frames have no destination yet: the receiver keeps room for
 *                   them, so that none of them ever stands in the way of an older one
 */
record Pieces(int bytes, int unaccepted) {

    private static final int LARGEST_BYTES = 1 << 20;
    /** Of 128 KiB each, these are 4 MiB: what 400 Gb/s deliver in 80 us. */
    private static final int UNACCEPTED = 32;

    /** The rule for a connection with this stripe threshold and so many frames in flight. */
    public static Pieces of(int threshold, int framesInFlight) {
        int half = Math.clamp(threshold / 2, 1, LARGEST_BYTES);
        return new Pieces(half + HeaderFormat.PART_ALIGNMENT - 1 & -HeaderFormat.PART_ALIGNMENT,
                framesInFlight + UNACCEPTED);
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
