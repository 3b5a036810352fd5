package org.millrace.gin;

import java.time.Duration;
import org.millrace.config.Settings.PayloadCheck;

/**
 * Settings of a communicator's data transfers. All ranks must have the same {@code chunkBytes}. The ranks compare this
 * value when they connect.
 *
 * @param chunkBytes maximum number of bytes of a put or get that one frame transfers. The memory of each window must
 *                   support transfers of this size.
 * @param depth      maximum number of frames in flight in each direction between two ranks, a power of two
 * @param patience   maximum time that a frame waits until this rank has created the frame's window or context. It is
 *                   also the maximum time that the close of a window or context waits for operations in flight. If no
 *                   operation makes progress for this time, the communicator reports a stall.
 * @param check      check of the payloads of frames, the same on all ranks
 */
public record GinOptions(long chunkBytes, int depth, Duration patience, PayloadCheck check) {

    /** Maximum size of a chunk. Every network can transfer a payload of this size. */
    public static final long MAX_CHUNK_BYTES = 1 << 30;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if a value is out of range
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

    /** Creates options without a check of payloads. */
    public GinOptions(long chunkBytes, int depth, Duration patience) {
        this(chunkBytes, depth, patience, PayloadCheck.OFF);
    }

    /** Returns these options with a check of payloads. */
    public GinOptions withCheck(PayloadCheck of) {
        return new GinOptions(chunkBytes, depth, patience, of);
    }

    /** Returns options that suit most programs. */
    public static GinOptions defaults() {
        return new GinOptions(1 << 20, 256, Duration.ofSeconds(10));
    }
}
