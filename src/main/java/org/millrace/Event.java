package org.millrace;

import java.time.Duration;

/**
 * A mark in a {@link DeviceStream}: it is reached when all that the stream held before it is complete. Made by
 * {@link Device#newEvent()}, put into a stream by {@link DeviceStream#record}; recording it again moves it, and what
 * already waits for the mark before goes on waiting for that one.
 */
public interface Event extends AutoCloseable {

    /**
     * Whether the mark that was recorded last is reached.
     *
     * @return true also if it was never recorded
     * @throws MillraceException if an operation before it failed
     */
    boolean query();

    /**
     * Waits until the mark that was recorded last is reached.
     *
     * @param deadline how long at the most
     * @throws MillraceException if an operation before it failed, or if the deadline passed first
     */
    void synchronize(Duration deadline);

    /**
     * {@return how much later this mark was reached than another that is reached, too}
     *
     * @param earlier the first of them, of a device of the same kind
     * @throws MillraceException if one of them is not recorded or not reached
     */
    Duration elapsedSince(Event earlier);

    /** Gives it back; streams that wait for it still do. Closing twice is allowed. */
    @Override
    void close();
}
