package org.millrace.gin;

import java.time.Duration;

/**
 * How a communicator moves data. All ranks must have the same {@code chunkBytes}; they tell each other.
 *
 * @param chunkBytes most bytes of a put or get that travel as one frame; a window's memory must be able to hold that
 *                   much in one transfer
 * @param depth      frames of one peer that may be under way at once in each direction, a power of two
 * @param patience   how long a frame may wait for the window or context that it names, which its peer may have made a
 *                   moment earlier, and a closing window or context for what is under way in it; after so long without
 *                   any progress the communicator says what is under way
 */
public record GinOptions(long chunkBytes, int depth, Duration patience) {

    /** The longest chunk: what every network can carry as one payload. */
    public static final long MAX_CHUNK_BYTES = 1 << 30;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range
     */
    public GinOptions {
        if (chunkBytes < Long.BYTES || chunkBytes > MAX_CHUNK_BYTES) {
            throw new IllegalArgumentException(
                    "GIN chunks of " + chunkBytes + " bytes: choose 8 to " + MAX_CHUNK_BYTES);
        }
        if (depth < 2 || Integer.bitCount(depth) != 1) {
            throw new IllegalArgumentException(
                    "a depth of " + depth + " GIN frames: choose a power of two of 2 or more");
        }
    }

    /** What is good for most. */
    public static GinOptions defaults() {
        return new GinOptions(1 << 20, 256, Duration.ofSeconds(10));
    }
}
