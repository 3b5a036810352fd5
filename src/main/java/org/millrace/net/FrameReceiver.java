package org.millrace.net;

import org.jspecify.annotations.Nullable;

/** The receiving end of a connection. One thread at a time. */
public interface FrameReceiver extends FrameEnd {

    /**
     * The header of the oldest frame whose payload has no destination yet. The same object comes back until
     * {@link #accept} is called, and it is reused after.
     *
     * @return the header; null if none has arrived (or as many payloads are being received as the connection can hold)
     * @throws ConnectionException if the connection is lost, or the peer has closed it
     */
    @Nullable
    FrameHeader poll();

    /**
     * Says where the payload of the header last polled goes. It is written later, until {@link #framesCompleted()}
     * counts the frame.
     *
     * @param region the destination; null only if the payload's length is 0
     * @param offset of the payload's first byte in the region
     */
    void accept(@Nullable MemoryRegion region, long offset);

    /**
     * {@return whether the payload of the header last polled lies in a device's memory at the peer: only then it may be
     * accepted into memory of a device here}
     */
    default boolean isOnDevice() {
        return false;
    }

    /** {@return whether payloads can be spread over pages, with {@link #acceptScattered}} */
    default boolean scatters() {
        return false;
    }

    /**
     * Says that the payload of the header last polled goes to pages, in order, each filled before the next is begun.
     * Otherwise as {@link #accept(MemoryRegion, long)}.
     *
     * @param pages the pages
     * @param first of them; as many as the payload needs follow it
     * @throws UnsupportedOperationException if this receiver does not {@link #scatters() scatter}
     */
    default void acceptScattered(Pages pages, int first) {
        throw new UnsupportedOperationException(this + " receives payloads in one piece");
    }

    /**
     * {@return how many payloads have arrived whole so far, in the order of their headers: a count that only grows}
     * What it counts is acknowledged to the sender by later calls of {@link #progress()} or {@link #poll()}, which go
     * on as long as the sender may wait for the last of it, or when this end is closed.
     */
    long framesCompleted();

    /**
     * {@return whether payloads of so many bytes at the most, whose destination and length are multiples of 8, are
     * stored in whole 8-byte words, in any order, so that a thread that polls the destination never sees half of one}
     *
     * @param bytes length of the longest payload that needs it
     */
    default boolean storesWholeWords(long bytes) {
        return false;
    }

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
}
