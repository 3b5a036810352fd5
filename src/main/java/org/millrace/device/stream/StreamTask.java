package org.millrace.device.stream;

/** Something that a stream runs, on the device's thread. */
interface StreamTask {

    /** Does what can be done without waiting; returns how much, 0 if it waits for somebody. */
    int progress();

    /** The task will not be run, because one before it on its stream failed. */
    void skip(Throwable reason);

    /** Whether there is nothing left to do. */
    boolean done();
}
