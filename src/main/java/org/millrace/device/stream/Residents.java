package org.millrace.device.stream;

import java.util.ArrayList;
import java.util.List;
import org.millrace.MillraceException;
import org.millrace.abi.KernelArguments;
import org.millrace.device.work.DeviceCommunicator;
import org.millrace.device.work.WorkReader;

/** The communicators whose kernels a device runs: kernels name theirs by its address. */
final class Residents {

    private final String device;
    /** Copied when one comes or goes. */
    private volatile Resident[] all = {};

    Residents(String device) {
        this.device = device;
    }

    synchronized void add(Resident resident) {
        List<Resident> more = new ArrayList<>(List.of(all));
        more.add(resident);
        all = more.toArray(Resident[]::new);
    }

    synchronized void remove(Resident resident) {
        List<Resident> fewer = new ArrayList<>(List.of(all));
        fewer.remove(resident);
        all = fewer.toArray(Resident[]::new);
    }

    Resident at(long address) {
        for (Resident resident : all) {
            if (resident.communicator().address() == address) {
                return resident;
            }
        }
        throw new MillraceException(
                device + ": a kernel's work is damaged: there is no communicator at 0x" + Long.toHexString(address));
    }

    /** What the device's thread knows of a communicator. No other thread uses it. */
    static final class Resident {

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

        /** Notes that a work is complete. */
        void complete(int channel, long number, long timestamp) {
            communicator.completedWork(channel).note(number, timestamp);
        }
    }
}
