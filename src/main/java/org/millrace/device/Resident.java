package org.millrace.device;

import org.millrace.abi.KernelArguments;

/** State of a communicator on the device's thread, which runs its kernels. No other thread uses it. */
final class Resident {

    private final DeviceCommunicator communicator;
    private final WorkReader reader;
    /** Number of works begun on each channel so far, counted if their times are recorded. */
    private final long[] works = new long[KernelArguments.MAX_CHANNELS];

    Resident(DeviceCommunicator communicator) {
        this.communicator = communicator;
        this.reader = new WorkReader(communicator.fifoCounters());
    }

    DeviceCommunicator communicator() {
        return communicator;
    }

    /** Returns the reader of the blocks' work. Blocks use it in turns. */
    WorkReader reader() {
        return reader;
    }

    /** Records that the next work of a channel begins. Returns its number. */
    long begin(int channel, long timestamp) {
        long number = ++works[channel];
        communicator.startedWork(channel).note(number, timestamp);
        return number;
    }

    void complete(int channel, long number, long timestamp) {
        communicator.completedWork(channel).note(number, timestamp);
    }
}
