package org.millrace.device.gin;

import java.time.Duration;
import org.millrace.abi.gin.GinDescriptorFormat;

/**
 * A program's requirements for a device communicator.
 *
 * @param format        format of the descriptors, which selects the NCCL release that the emulated device imitates
 * @param queueSize     number of descriptors of each queue, a power of two
 * @param worldBarriers number of barriers of all ranks, in each context
 * @param railBarriers  number of barriers of the ranks of each rail, in each context
 * @param lsaSize       number of consecutive ranks that are near each other (that share memory); the number of ranks
 *                      must be a multiple of this number
 * @param firstIndex    initial value of the indices of all queues; not 0 in tests of the wrap
 * @param deadline      maximum duration of a single wait of a block
 */
public record GinRequirements(GinDescriptorFormat format, int contexts, int queueSize, int signals, int counters,
        int worldBarriers, int railBarriers, int lsaSize, int firstIndex, Duration deadline) {

    /**
     * Returns requirements with default values: queues of 64 descriptors in the format of NCCL 2.30, one barrier for
     * all ranks, and one for each rail. No ranks are near each other, and the deadline is one minute.
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
     * Returns these requirements with another {@link #lsaSize}, and with one rail barrier for each of the near ranks.
     */
    public GinRequirements withLsaSize(int ranks) {
        return new GinRequirements(format, contexts, queueSize, signals, counters, worldBarriers, ranks, ranks,
                firstIndex, deadline);
    }

    public GinRequirements withDeadline(Duration patience) {
        return new GinRequirements(format, contexts, queueSize, signals, counters, worldBarriers, railBarriers, lsaSize,
                firstIndex, patience);
    }

    /** Returns the number of signals of a context: the signals for users, and one signal for each barrier. */
    int allSignals() {
        return signals + worldBarriers + railBarriers;
    }
}
