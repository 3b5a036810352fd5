package com.example.millrace.experts;

import org.millrace.device.gin.LsaMemory;

/**
 * Where things lie in the window of an exchange in two levels, on every rank alike, and which signals it uses. Tokens
 * have two words more than their content: whose they are, and which ranks of the host they are for.
 *
 * <pre>
 *   rails       as {@link ExpertLayout} has it, for one rank of each host
 *   metadata    to each host, from each host: by channel, how many tokens come, and how many of them go to each rank
 *   rings       by channel, then by near rank that stores: slots
 *   cells       by channel and near rank, 8 bytes each: tails, heads, totals
 *   addresses   8 bytes for each near rank
 *   barrier     8 bytes
 * </pre>
 */
public final class HybridLayout {

    static final int HEADER_WORDS = 2;

    private final HostedPlan hosted;
    private final ExpertPlan railPlan;
    private final ExpertLayout rails;
    private final int channels;
    private final int signalsBase;

    /** The layout for a plan. */
    public HybridLayout(HostedPlan hosted) {
        this(hosted, 0);
    }

    /** @param signalsBase the first of its signals */
    HybridLayout(HostedPlan hosted, int signalsBase) {
        this.signalsBase = signalsBase;
        this.hosted = hosted;
        ExpertPlan plan = hosted.plan();
        this.channels = plan.channels();
        railPlan = new ExpertPlan(hosted.hosts(), channels, plan.slots(), plan.tokens(), 1, plan.words() + HEADER_WORDS,
                plan.seed());
        rails = new ExpertLayout(railPlan, signalsBase);
    }

    /** Size of the window. */
    public long windowBytes() {
        return barrier() + Long.BYTES;
    }

    /** Signals that are needed in each context. */
    public int signals() {
        return addressSignal() + LsaMemory.signals() - signalsBase;
    }

    ExpertPlan railPlan() {
        return railPlan;
    }

    ExpertLayout rails() {
        return rails;
    }

    int addressSignal() {
        return signalsBase + rails.signals();
    }

    /** How many tokens of a channel go to a host, and behind that how many to each of its ranks. */
    long metadataTo(int host, int channel) {
        return rails.windowBytes() + ((long) host * channels + channel) * (1 + hosted.perHost()) * Long.BYTES;
    }

    long metadataFrom(int host, int channel) {
        return metadataTo(hosted.hosts() + host, channel);
    }

    long metadataBytes() {
        return (long) channels * (1 + hosted.perHost()) * Long.BYTES;
    }

    long ringSlot(int channel, int from, long index) {
        return metadataTo(2 * hosted.hosts(), 0)
                + (((long) channel * hosted.perHost() + from) * railPlan.slots() + index % railPlan.slots())
                        * railPlan.tokenBytes();
    }

    /** How many tokens a near rank has stored in this rank's ring; that rank writes it. */
    long tail(int channel, int from) {
        return cell(0, channel, from);
    }

    /** How many of this rank's tokens a near rank has taken; that rank writes it. */
    long head(int channel, int from) {
        return cell(1, channel, from);
    }

    /** How many tokens a near rank will forward to this one in a batch; that rank writes it. */
    long total(int channel, int from) {
        return cell(2, channel, from);
    }

    private long cell(int kind, int channel, int from) {
        return ringSlot(channels, 0, 0) + (((long) kind * channels + channel) * hosted.perHost() + from) * Long.BYTES;
    }

    long addresses() {
        return cell(3, 0, 0);
    }

    long barrier() {
        return addresses() + (long) hosted.perHost() * Long.BYTES;
    }
}
