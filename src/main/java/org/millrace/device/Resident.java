package org.millrace.device;

import org.millrace.abi.KernelArguments;

/** What the device's thread knows of a communicator whose kernels it runs. No other thread uses it. */
final class Resident {

    private final DeviceCommunicator communicator;
    private final WorkReader reader;
    /** Work on each channel that has begun so far, where somebody reads its times. */
    private final long[] works = new long[KernelArguments.MAX_CHANNELS];

    Resident(DeviceCommunicator communicator) {
        this.communicator = communicator;
        this.reader = new WorkReader(communicator.fifoCounters());
    }

    DeviceCommunicator communicator() {
        return communicator;
    }

    /** Of the blocks' work, in turns. */
    WorkReader reader() {
        return reader;
    }

    /** Notes that the next work of a channel begins; returns its number. */
    long begin(int channel, long timestamp) {
        long number = ++works[channel];
        communicator.startedWork(channel).note(number, timestamp);
        return number;
    }

    void complete(int channel, long number, long timestamp) {
        communicator.completedWork(channel).note(number, timestamp);
    }
}
