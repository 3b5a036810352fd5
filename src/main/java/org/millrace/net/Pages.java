package org.millrace.net;

/**
 * Pieces of one region, each as long as the others, that one payload after another is spread over.
 *
 * @param region    where they lie
 * @param offsets   of each in the region, unsigned; not copied, and not to be changed
 * @param bytesEach length of every page
 */
public record Pages(MemoryRegion region, int[] offsets, int bytesEach) {

    /**
     * {@return where a byte of a payload lies, as an offset in the region}
     *
     * @param first the payload's first page
     * @param at    which byte of the payload, 0 or more
     */
    public long offset(int first, long at) {
        return Integer.toUnsignedLong(offsets[first + (int) (at / bytesEach)]) + at % bytesEach;
    }
}
