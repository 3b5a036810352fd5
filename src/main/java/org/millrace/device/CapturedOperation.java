package org.millrace.device;

import org.millrace.DeviceStream;

/** What a stream was given while it was captured: it can be enqueued again and again. */
public interface CapturedOperation {

    /**
     * Refuses a launch before anything is enqueued.
     *
     * @throws RuntimeException if it cannot be enqueued any more
     */
    default void check() {
        // what is the device's own always can
    }

    void enqueue(DeviceStream stream);

    /** It will not be enqueued any more. */
    default void release() {
        // holds nothing
    }
}
