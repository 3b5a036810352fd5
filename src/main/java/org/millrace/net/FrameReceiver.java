package org.millrace.net;

import org.jspecify.annotations.Nullable;

/** The receiving end of a connection. One thread at a time. */
public interface FrameReceiver extends FrameEnd {

    /**
     * Returns the header of the oldest frame without a destination for its payload. The same object is returned until
     * {@link #accept} is called, and is reused afterwards.
     *
     * @return the header; null if none has arrived, or if the maximum number of payloads is being received
     * @throws ConnectionException if the connection is lost, or the peer has closed it
     */
    @Nullable
    FrameHeader poll();

    /**
     * Sets the destination for the payload of the header polled last. The payload is written later, until
     * {@link #framesCompleted()} counts the frame.
     *
     * @param region the destination; null only if the payload's length is 0
     * @param offset offset of the payload's first byte in the region
     */
    void accept(@Nullable MemoryRegion region, long offset);

    /**
     * {@return whether the payload of the header polled last lies in device memory of the peer. Only such a payload may
     * be accepted into device memory here}
     */
    default boolean isOnDevice() {
        return false;
    }

    /** {@return whether {@link #acceptScattered} can spread payloads over pages} */
    default boolean scatters() {
        return false;
    }

    /**
     * Sets pages as the destination for the payload of the header polled last. The pages are filled in order, each
     * before the next one. Otherwise like {@link #accept(MemoryRegion, long)}.
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
     * Later calls of {@link #progress()} or {@link #poll()} acknowledge the counted payloads to the sender. The calls
     * continue as long as the sender may wait for the last acknowledgement. Closing this end also acknowledges them.
     */
    long framesCompleted();

    /**
     * {@return whether short payloads are stored in whole 8-byte words, in any order, if destination and length are
     * multiples of 8. A thread that polls the destination then never sees half a word}
     *
     * @param bytes length of the longest payload that needs it
     */
    default boolean storesWholeWords(long bytes) {
        return false;
    }

    /**
     * Pages of equal length in one region. Payloads are spread over consecutive pages.
     *
     * @param region    region of the pages
     * @param offsets   offset of each page in the region, unsigned; not copied, must not change
     * @param bytesEach length of a page in bytes
     */
    public record Pages(MemoryRegion region, int[] offsets, int bytesEach) {

        /**
         * {@return offset in the region of one byte of a payload}
         *
         * @param first index of the payload's first page
         * @param at    index of the byte in the payload, 0 or more
         */
        public long offset(int first, long at) {
            return Integer.toUnsignedLong(offsets[first + (int) (at / bytesEach)]) + at % bytesEach;
        }
    }
}
