package org.millrace.device.gin;

import java.time.Duration;
import org.millrace.abi.GinDescriptorFormat;

/**
 * A program's requirements for a device communicator.
 *
 * @param format        format of the descriptors: selects the NCCL release with the emulated device side
 * @param queueSize     number of descriptors of each queue, a power of two
 * @param worldBarriers number of barriers of all ranks, in each context
 * @param railBarriers  number of barriers of the ranks of a rail, in each context
 * @param lsaSize       number of consecutive ranks that count as near each other; divides the number of ranks
 * @param firstIndex    initial value of the queues' indices
 * @param deadline      maximum duration of each wait of a block
 */
public record GinRequirements(GinDescriptorFormat format, int contexts, int queueSize, int signals, int counters,
        int worldBarriers, int railBarriers, int lsaSize, int firstIndex, Duration deadline) {

    /**
     * Returns requirements with default values: queues of 64 descriptors of NCCL 2.30, one barrier of all ranks, no
     * near ranks, one barrier of each rail, and a deadline of one minute.
     */
    public static GinRequirements of(int contexts, int signals, int counters) {
        return new GinRequirements(GinDescriptorFormat.V30, contexts, 64, signals, counters, 1, 1, 1, 0,
                Duration.ofMinutes(1));
    }

    public GinRequirements withFormat(GinDescriptorFormat other) {
        return new GinRequirements(other, contexts, queueSize, signals, counters, worldBarriers, railBarriers, lsaSize,
                firstIndex, deadline);
    }

    public GinRequirements withQueues(int size, int first) {
        return new GinRequirements(format, contexts, size, signals, counters, worldBarriers, railBarriers, lsaSize,
                first, deadline);
    }

    /**
     * Returns the same requirements with the given number of ranks near each other, and one rail barrier for each of
     * them.
     */
    public GinRequirements withLsaSize(int ranks) {
        return new GinRequirements(format, contexts, queueSize, signals, counters, worldBarriers, ranks, ranks,
                firstIndex, deadline);
    }

    public GinRequirements withDeadline(Duration patience) {
        return new GinRequirements(format, contexts, queueSize, signals, counters, worldBarriers, railBarriers, lsaSize,
                firstIndex, patience);
    }

    /** Returns the number of signals of a context, including the barriers' signals. */
    int allSignals() {
        return signals + worldBarriers + railBarriers;
    }
}
