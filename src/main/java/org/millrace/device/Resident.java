package org.millrace.device;

import org.millrace.abi.kernel.KernelArguments;

/**
 * The part of a communicator's state that the device's thread needs to run the communicator's kernels. Device's thread
 * only.
 */
final class Resident {

    private final DeviceCommunicator communicator;
    private final WorkReader reader;
    /** Number of work items that have begun on each channel. Only work items with recorded times are counted. */
    private final long[] works = new long[KernelArguments.MAX_CHANNELS];

    Resident(DeviceCommunicator communicator) {
        this.communicator = communicator;
        this.reader = new WorkReader(communicator.fifoCounters());
    }

    DeviceCommunicator communicator() {
        return communicator;
    }

    /** Returns the reader that blocks use for their work items. One block at a time uses the reader. */
    WorkReader reader() {
        return reader;
    }

    /** Records that the next work item of a channel begins. Returns the number of the work item. */
    long begin(int channel, long timestamp) {
        long number = ++works[channel];
        communicator.startedWork(channel).note(number, timestamp);
        return number;
    }

    void complete(int channel, long number, long timestamp) {
        communicator.completedWork(channel).note(number, timestamp);
    }
}
