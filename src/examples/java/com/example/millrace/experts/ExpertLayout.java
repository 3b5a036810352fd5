package com.example.millrace.experts;

/**
 * Where things lie in the window of an exchange, on every rank alike, and which signals it uses.
 *
 * <pre>
 *   window    counts to each rank | counts from each rank | buffers to send from | buffers to receive into
 *             counts: 8 bytes a channel; buffers: by channel, then by rank, then slots
 *   signals   heads: channel * ranks + rank | tails: channel * ranks + rank | counts
 * </pre>
 *
 * The rank in a signal's number is that of the rank that adds to it.
 */
public final class ExpertLayout {

    private final ExpertPlan plan;
    private final int signalsBase;

    /** The layout for a plan. */
    public ExpertLayout(ExpertPlan plan) {
        this(plan, 0);
    }

    /** @param signalsBase the first of its signals */
    ExpertLayout(ExpertPlan plan, int signalsBase) {
        this.plan = plan;
        this.signalsBase = signalsBase;
    }

    /** Size of the window. */
    public long windowBytes() {
        return receiveSlot(plan.channels(), 0, 0);
    }

    /**
     * Signals that are needed in each context: those of all channels have numbers of their own, in whatever context
     * they are used.
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
