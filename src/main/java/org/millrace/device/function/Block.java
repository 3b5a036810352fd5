package org.millrace.device.function;

/** One channel's part of a kernel: what a thread block is on a GPU. */
public interface Block {

    /** The kernel starts: everything before it on the stream is complete. Called once, on the device's thread. */
    void begin();

    /** Does what can be done without waiting for a peer; returns the number of slices moved. */
    int progress();

    boolean done();

    /** What a block that does not get on waits for: connection, step and counters. */
    String waitingFor();
}
