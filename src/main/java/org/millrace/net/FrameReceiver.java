package org.millrace.net;

import org.jspecify.annotations.Nullable;

/** The receiving end of a connection. Used by one thread at a time. */
public interface FrameReceiver extends FrameEnd {

    /**
     * Returns the header of the oldest frame that has not been accepted. The same object is returned until
     * {@link #accept} is called, and is reused afterwards.
     *
     * @return the header; null if no header has arrived, or if the maximum number of payloads is being received
     * @throws ConnectionException if the connection is lost, or the peer has closed it
     */
    @Nullable
    FrameHeader poll();

    /**
     * Accepts the frame whose header was polled last. Sets the destination of the frame's payload. The network may
     * write the payload at any time until {@link #framesCompleted()} counts the frame.
     *
     * @param region the destination; null only if the payload's length is 0
     * @param offset offset of the payload's first byte in the region
     */
    void accept(@Nullable MemoryRegion region, long offset);

    /**
     * {@return whether the frame whose header was polled last has its payload in device memory of the peer} Only such a
     * payload may be accepted into device memory of this process.
     */
    default boolean isOnDevice() {
        return false;
    }

    /** {@return whether this receiver implements {@link #acceptScattered}, which stores a payload in pages} */
    default boolean scatters() {
        return false;
    }

    /**
     * Accepts the frame whose header was polled last. Sets pages as the destination of the frame's payload. The network
     * fills the pages in their order. In all other respects, this method is like {@link #accept(MemoryRegion, long)}.
     *
     * @param pages the pages
     * @param first index of the first page; the payload uses as many following pages as it needs
     * @throws UnsupportedOperationException if this receiver does not {@link #scatters() scatter}
     */
    default void acceptScattered(Pages pages, int first) {
        throw new UnsupportedOperationException(this + " receives payloads in one piece");
    }

    /**
     * {@return number of payloads received completely so far, in the order of their headers; the count only increases}
     * Later calls of {@link #progress()} or {@link #poll()} acknowledge the counted payloads to the sender. The caller
     * must continue these calls as long as the sender may wait for the last acknowledgement. Closing this end also
     * acknowledges the counted payloads.
     */
    long framesCompleted();

    /**
     * {@return whether this receiver stores a payload of at most {@code bytes} bytes in whole 8-byte words} The order
     * of the words is not specified. The destination and the length of the payload must be multiples of 8. A thread
     * that polls the destination then never sees half a word.
     *
     * @param bytes length of the longest payload for which the caller needs this guarantee
     */
    default boolean storesWholeWords(long bytes) {
        return false;
    }

    /**
     * Pages of equal length in one region. A payload is stored in consecutive pages.
     *
     * @param region    region of the pages
     * @param offsets   offset of each page in the region, unsigned; the array is not copied and must not change
     * @param bytesEach length of a page in bytes
     */
    public record Pages(MemoryRegion region, int[] offsets, int bytesEach) {

        /**
         * {@return offset in the region at which a byte of a payload is stored}
         *
         * @param first index of the payload's first page
         * @param at    index of the byte in the payload, 0 or more
         */
        public long offset(int first, long at) {
            return Integer.toUnsignedLong(offsets[first + (int) (at / bytesEach)]) + at % bytesEach;
        }
    }
}
