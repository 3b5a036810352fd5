package org.millrace;

import java.time.Duration;

/**
 * A mark in a {@link DeviceStream}, reached when all earlier work of the stream is complete. {@link Device#newEvent()}
 * creates the event, and {@link DeviceStream#record} places the mark in a stream. A later call of {@code record}
 * replaces the mark. The earlier mark still applies to streams and threads that already wait for it.
 */
public interface Event extends AutoCloseable {

    /**
     * Checks whether the most recent mark is reached.
     *
     * @return true if the mark is reached, or if the event was never recorded
     * @throws MillraceException if an operation before the mark failed
     */
    boolean query();

    /**
     * Waits until the most recent mark is reached.
     *
     * @param deadline maximum time to wait, 0 or more
     * @throws IllegalArgumentException if the deadline is negative
     * @throws MillraceException        if an operation before the mark failed, or if the deadline passed first
     */
    void synchronize(Duration deadline);

    /**
     * {@return time from the mark of another event to the mark of this event; the streams must have reached both marks}
     *
     * @param earlier the earlier event, of a device of the same kind
     * @throws MillraceException if one of the events is not recorded or not reached
     */
    Duration elapsedSince(Event earlier);

    /** Releases the event. Streams that wait for its mark continue to wait. Closing twice is allowed. */
    @Override
    void close();
}
