package org.millrace.device;

/**
 * The share of an operation's elements that one channel processes. The channel processes its share in rounds. In each
 * round, the channel moves one chunk of each part of the operation. An all-reduce around a ring has one part for each
 * rank, and most other operations have a single part. The chunks of the last round are as small as possible.
 *
 * @param first     index of the share's first element in the operation
 * @param elements  number of elements of the share. A share without elements has one round of empty chunks.
 * @param fullChunk number of elements of a chunk that fills its slots
 * @param alignment number of elements in 16 bytes; the number of elements of each chunk is a multiple of this number
 */
record ChannelPart(long first, long elements, long fullChunk, long alignment) {

    /** Alignment of each chunk, in bytes. Each chunk then begins at an address that wide copies can use. */
    private static final int CHUNK_ALIGNMENT_BYTES = 16;

    public static ChannelPart of(long first, long elements, int elementBytes, long chunkBytes) {
        return new ChannelPart(first, elements, chunkBytes / elementBytes, CHUNK_ALIGNMENT_BYTES / elementBytes);
    }

    /**
     * @param roundFirst index of the round's first element, counted within the share
     * @param parts      number of parts of the operation
     */
    long chunkElements(long roundFirst, int parts) {
        long remaining = elements - roundFirst;
        if (remaining >= parts * fullChunk) {
            return fullChunk;
        }
        long even = (remaining + parts - 1) / parts;
        return (even + alignment - 1) / alignment * alignment;
    }

    /**
     * Returns the number of rounds in which the channel processes its elements, 1 or more.
     *
     * @param parts number of chunks that one round processes
     */
    long rounds(int parts) {
        return Math.max(1, (elements + parts * fullChunk - 1) / (parts * fullChunk));
    }
}
