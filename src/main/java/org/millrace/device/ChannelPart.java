package org.millrace.device;

/**
 * The elements that one channel processes, in rounds. A round has one chunk of each part of the operation. An
 * all-reduce around a ring has one part for each rank, and most other operations have a single part. The chunks of the
 * last round are as small as possible.
 *
 * @param elements  number of elements; 0 has one round of empty chunks
 * @param fullChunk number of elements of a chunk that fills its slots
 * @param alignment each chunk's number of elements is a multiple of it: the number of elements in 16 bytes
 */
record ChannelPart(long first, long elements, long fullChunk, long alignment) {

    /** Alignment of each chunk, in bytes, so that the next chunk is aligned for wide copies. */
    private static final int CHUNK_ALIGNMENT_BYTES = 16;

    public static ChannelPart of(long first, long elements, int elementBytes, long chunkBytes) {
        return new ChannelPart(first, elements, chunkBytes / elementBytes, CHUNK_ALIGNMENT_BYTES / elementBytes);
    }

    /** Returns the number of elements of a chunk in the round that begins at the given element of the share. */
    long chunkElements(long roundFirst, int parts) {
        long remaining = elements - roundFirst;
        if (remaining >= parts * fullChunk) {
            return fullChunk;
        }
        long even = (remaining + parts - 1) / parts;
        return (even + alignment - 1) / alignment * alignment;
    }

    /** Returns the number of rounds that the share takes, 1 or more. */
    long rounds(int parts) {
        return Math.max(1, (elements + parts * fullChunk - 1) / (parts * fullChunk));
    }
}
