package org.millrace.device.gin;

import java.time.Duration;
import org.millrace.abi.GinDescriptorFormat;

/**
 * What a program needs of a device communicator.
 *
 * @param format        of the descriptors: which NCCL's device side is emulated
 * @param queueSize     descriptors of each queue, a power of two
 * @param worldBarriers barriers of all ranks, in each context
 * @param railBarriers  barriers of the ranks of a rail, in each context
 * @param lsaSize       how many ranks with numbers in a row count as near each other; divides the number of ranks
 * @param firstIndex    where the queues' indices begin
 * @param deadline      how long a block waits for anything before it gives up
 */
public record GinRequirements(GinDescriptorFormat format, int contexts, int queueSize, int signals, int counters,
        int worldBarriers, int railBarriers, int lsaSize, int firstIndex, Duration deadline) {

    /**
     * Requirements of a program that has said only this: queues of 64 descriptors of NCCL 2.30, one barrier of all
     * ranks, every rank on its own with one of its rail, and a minute to wait.
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

    /** The same with several ranks near each other, and a barrier of a rail for each of them. */
    public GinRequirements withLsaSize(int ranks) {
        return new GinRequirements(format, contexts, queueSize, signals, counters, worldBarriers, ranks, ranks,
                firstIndex, deadline);
    }

    public GinRequirements withDeadline(Duration patience) {
        return new GinRequirements(format, contexts, queueSize, signals, counters, worldBarriers, railBarriers, lsaSize,
                firstIndex, patience);
    }

    /** Signals of a context, those of the barriers included. */
    int allSignals() {
        return signals + worldBarriers + railBarriers;
    }
}
