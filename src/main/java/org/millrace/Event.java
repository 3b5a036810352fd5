package org.millrace;

import java.time.Duration;

/**
 * A mark in a {@link DeviceStream}, reached when all earlier work of the stream is complete. {@link Device#newEvent()}
 * creates it, and {@link DeviceStream#record} puts it into a stream. Recording it again moves it; waits for the earlier
 * mark continue to wait for that mark.
 */
public interface Event extends AutoCloseable {

    /**
     * Checks whether the mark recorded last is reached.
     *
     * @return true also if it was never recorded
     * @throws MillraceException if an earlier operation failed
     */
    boolean query();

    /**
     * Waits until the mark recorded last is reached.
     *
     * @param deadline maximum time to wait
     * @throws MillraceException if an earlier operation failed, or if the deadline passed first
     */
    void synchronize(Duration deadline);

    /**
     * {@return time from another reached mark to this reached mark}
     *
     * @param earlier the earlier event, of a device of the same kind
     * @throws MillraceException if one of them is not recorded or not reached
     */
    Duration elapsedSince(Event earlier);

    /** Releases the event. Streams that wait for it continue to wait. Closing twice is allowed. */
    @Override
    void close();
}
