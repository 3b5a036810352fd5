package org.millrace.gin;

import java.time.Duration;

/**
 * Settings of a communicator's data transfers. All ranks must have the same {@code chunkBytes}, and compare it when
 * they connect.
 *
 * @param chunkBytes maximum number of bytes of a put or get that one frame transfers; a window's memory must support a
 *                   transfer of this size
 * @param depth      number of frames of one peer that may be in flight at the same time in each direction, a power of
 *                   two
 * @param patience   maximum time that a frame waits for its window or context, which its peer may have made slightly
 *                   earlier. It is also the maximum time that the close of a window or context waits for operations in
 *                   flight. After this time without progress the communicator reports a stall.
 */
public record GinOptions(long chunkBytes, int depth, Duration patience) {

    /** Maximum size of a chunk. Every network can transfer a payload of this size. */
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

    /** Returns options that suit most programs. */
    public static GinOptions defaults() {
        return new GinOptions(1 << 20, 256, Duration.ofSeconds(10));
    }
}
