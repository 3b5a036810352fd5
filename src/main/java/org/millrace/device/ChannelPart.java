package org.millrace.device;

/**
 * The elements that one channel works through, in rounds. A round has a chunk of each of the operation's parts: one for
 * each rank in an all-reduce around a ring, a single one in most others. The last round's chunks are as small as they
 * can be.
 *
 * @param elements  how many; 0 has one round of empty chunks
 * @param fullChunk elements of a chunk that fills its slots
 * @param alignment every chunk's elements are a multiple of it: as many elements as 16 bytes hold
 */
record ChannelPart(long first, long elements, long fullChunk, long alignment) {

    /** Bytes that a chunk's elements are a multiple of, so that the next one is aligned for wide copies. */
    private static final int CHUNK_ALIGNMENT_BYTES = 16;

    public static ChannelPart of(long first, long elements, int elementBytes, long chunkBytes) {
        return new ChannelPart(first, elements, chunkBytes / elementBytes, CHUNK_ALIGNMENT_BYTES / elementBytes);
    }

    /** Elements of a chunk of the round that begins at an element of the share. */
    long chunkElements(long roundFirst, int parts) {
        long remaining = elements - roundFirst;
        if (remaining >= parts * fullChunk) {
            return fullChunk;
        }
        long even = (remaining + parts - 1) / parts;
        return (even + alignment - 1) / alignment * alignment;
    }

    /** How many rounds the share takes, 1 or more. */
    long rounds(int parts) {
        return Math.max(1, (elements + parts * fullChunk - 1) / (parts * fullChunk));
    }
}
