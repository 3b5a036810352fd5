package com.example.millrace.experts;

/**
 * Layout of the window of an exchange, the same on every rank, and the signals of the exchange.
 *
 * <pre>
 *   window    counts to each rank | counts from each rank | buffers to send from | buffers to receive into
 *             counts: 8 bytes a channel; buffers: by channel, then by rank, then slots
 *   signals   heads: channel * ranks + rank | tails: channel * ranks + rank | counts
 * </pre>
 *
 * The rank in the number of a signal is the rank that adds to the signal.
 */
public final class ExpertLayout {

    private final ExpertPlan plan;
    private final int signalsBase;

    /** Creates the layout for a plan. */
    public ExpertLayout(ExpertPlan plan) {
        this(plan, 0);
    }

    /** @param signalsBase number of the exchange's first signal */
    ExpertLayout(ExpertPlan plan, int signalsBase) {
        this.plan = plan;
        this.signalsBase = signalsBase;
    }

    /** Returns the size of the window. */
    public long windowBytes() {
        return receiveSlot(plan.channels(), 0, 0);
    }

    /**
     * Returns the number of signals that the exchange needs in each context. The signals of all channels have different
     * numbers, independent of their contexts.
     */
    public int signals() {
        return countsSignal() + 1 - signalsBase;
    }

    long countsTo(int rank) {
        return (long) rank * plan.channels() * Long.BYTES;
    }

    long countsFrom(int rank) {
        return countsTo(plan.ranks() + rank);
    }

    long countsBytes() {
        return (long) plan.channels() * Long.BYTES;
    }

    long sendSlot(int channel, int rank, long index) {
        return countsTo(2 * plan.ranks()) + slot(channel, rank, index);
    }

    long receiveSlot(int channel, int rank, long index) {
        return sendSlot(plan.channels(), 0, 0) + slot(channel, rank, index);
    }

    private long slot(int channel, int rank, long index) {
        return (((long) channel * plan.ranks() + rank) * plan.slots() + index % plan.slots()) * plan.tokenBytes();
    }

    int headSignal(int channel, int rank) {
        return signalsBase + channel * plan.ranks() + rank;
    }

    int tailSignal(int channel, int rank) {
        return signalsBase + plan.ranks() * plan.channels() + channel * plan.ranks() + rank;
    }

    int countsSignal() {
        return signalsBase + 2 * plan.ranks() * plan.channels();
    }
}
