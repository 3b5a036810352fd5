package org.millrace.nccl;

/**
 * What kernels will use of a communicator through NCCL's device functions.
 *
 * @param barriers barriers of all ranks, each for one thread block
 * @param signals  GIN signals of a context, with ids from 0
 * @param counters GIN counters of a context, with ids from 0
 * @param contexts GIN contexts; NCCL may make more or fewer, and 2.28 decides alone:
 *                 {@link NcclDeviceCommunicator#contexts()} says how many there are
 */
public record NcclDeviceRequirements(int barriers, int signals, int counters, int contexts) {

    /** Checks the numbers. */
    public NcclDeviceRequirements {
        if (barriers < 0 || signals < 0 || counters < 0 || contexts < 0) {
            throw new IllegalArgumentException(barriers + " barriers, " + signals + " signals, " + counters
                    + " counters, " + contexts + " contexts: a kernel needs 0 or more of each");
        }
    }

    /** Whether GIN must be there, even between ranks that share memory. */
    boolean gin() {
        return signals > 0 || counters > 0 || contexts > 0;
    }
}
