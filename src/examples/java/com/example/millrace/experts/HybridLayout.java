package com.example.millrace.experts;

import org.millrace.device.gin.LsaMemory;

/**
 * Layout of the window of an exchange in two levels, the same on every rank, and the signals of the exchange. A token
 * has two words before its content: its number, and the destination ranks of the host.
 *
 * <pre>
 *   rails       as {@link ExpertLayout} has it, for one rank of each host
 *   counts      to each host, from each host, 4 bytes each: tokens of each of its ranks and experts, and its own
 *   metadata    to each host, from each host, by channel, 4 bytes each: for each of its ranks the number of its tokens
 *               in the earlier channels, then including this one; the same for the host
 *   rings       by channel, then by near rank that stores: slots
 *   cells       by channel and near rank, 8 bytes each: tails, heads, totals; then counts, by expert and near rank
 *   addresses   window addresses of near ranks
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

    /** Creates the layout for a plan. */
    public HybridLayout(HostedPlan hosted) {
        this(hosted, 0);
    }

    /** @param signalsBase number of the exchange's first signal */
    HybridLayout(HostedPlan hosted, int signalsBase) {
        this.signalsBase = signalsBase;
        this.hosted = hosted;
        ExpertPlan plan = hosted.plan();
        this.channels = plan.channels();
        railPlan = new ExpertPlan(hosted.hosts(), channels, plan.slots(), plan.tokens(), 1, plan.words() + HEADER_WORDS,
                plan.seed());
        rails = new ExpertLayout(railPlan, signalsBase);
    }

    /** Returns the size of the window. */
    public long windowBytes() {
        return barrier() + Long.BYTES;
    }

    /** Returns the number of signals that the exchange needs in each context. */
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

    long countsTo(int host) {
        return rails.windowBytes() + host * countsBytes();
    }

    long countsFrom(int host) {
        return countsTo(hosted.hosts() + host);
    }

    long countsBytes() {
        return (hosted.perHost() + (long) hosted.perHost() * HostedPlan.EXPERTS + 1) * Integer.BYTES;
    }

    /**
     * Returns the offset of a rank's count within a host's counts. A rank beyond the host's ranks stands for the host.
     */
    long rankCount(long counts, int rank) {
        return rank < hosted.perHost() ? counts + (long) rank * Integer.BYTES : counts + countsBytes() - Integer.BYTES;
    }

    long expertCount(long counts, int rank, int expert) {
        return counts + (hosted.perHost() + (long) rank * HostedPlan.EXPERTS + expert) * Integer.BYTES;
    }

    long metadataTo(int host, int channel) {
        return countsTo(2 * hosted.hosts()) + ((long) host * channels + channel) * metadataBytes();
    }

    long metadataFrom(int host, int channel) {
        return metadataTo(hosted.hosts() + host, channel);
    }

    long metadataBytes() {
        return (hosted.perHost() * 2L + 2) * Integer.BYTES;
    }

    /**
     * Returns the offset in a channel's metadata of the number of a rank's first token. A rank beyond the host's ranks
     * stands for the host.
     */
    long first(long metadata, int rank) {
        return metadata + (rank < hosted.perHost() ? rank : 2L * rank) * Integer.BYTES;
    }

    /** Returns the offset in a channel's metadata of the number after a rank's last token. */
    long last(long metadata, int rank) {
        return first(metadata, rank) + (rank < hosted.perHost() ? hosted.perHost() : 1L) * Integer.BYTES;
    }

    long ringSlot(int channel, int from, long index) {
        long rings = metadataTo(2 * hosted.hosts(), 0) + Long.BYTES - 1 & -Long.BYTES;
        return rings + (((long) channel * hosted.perHost() + from) * railPlan.slots() + index % railPlan.slots())
                * railPlan.tokenBytes();
    }

    /**
     * Returns the offset of the number of tokens that a near rank has stored in this rank's ring. That near rank writes
     * the number.
     */
    long tail(int channel, int from) {
        return cell(0, channel, from);
    }

    /**
     * Returns the offset of the number of this rank's tokens that a near rank has taken. That near rank writes the
     * number.
     */
    long head(int channel, int from) {
        return cell(1, channel, from);
    }

    /**
     * Returns the offset of the number of tokens that a near rank forwards to this rank in a batch. The near rank
     * writes the number.
     */
    long total(int channel, int from) {
        return cell(2, channel, from);
    }

    private long cell(int kind, int channel, int from) {
        return ringSlot(channels, 0, 0) + (((long) kind * channels + channel) * hosted.perHost() + from) * Long.BYTES;
    }

    /**
     * Returns the offset of the number of tokens that a near rank received for one of this rank's experts. The near
     * rank writes the number.
     */
    long expertTotal(int expert, int from) {
        return cell(3, 0, 0) + ((long) expert * hosted.perHost() + from) * Long.BYTES;
    }

    long addresses() {
        return expertTotal(HostedPlan.EXPERTS, 0);
    }

    long barrier() {
        return addresses() + LsaMemory.bytes(hosted.perHost());
    }
}
