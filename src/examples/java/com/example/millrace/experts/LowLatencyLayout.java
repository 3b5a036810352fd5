package com.example.millrace.experts;

import org.millrace.device.gin.LsaMemory;

/**
 * Layout of the window of an exchange with low latency, the same on every rank, and the signals of the exchange. Every
 * rank has room for all tokens of each other rank, so that no sender waits for a head. A token begins with its number.
 *
 * <pre>
 *   own        slots: the tokens of this rank
 *   received   by rank, slots: tokens of others; then their experts' results for this rank's tokens
 *   returned   by rank, slots: results of this rank's experts
 *   counts     by phase and near rank, 8 bytes each
 *   addresses  window addresses of near ranks
 *   barrier    8 bytes
 *   signals    by phase and rank
 * </pre>
 */
public final class LowLatencyLayout {

    static final int DISPATCH = 0;
    static final int COMBINE = 1;
    private static final int PHASES = 2;

    private final HostedPlan hosted;
    private final ExpertPlan plan;
    private final int signalsBase;

    /** Creates the layout for a plan. */
    public LowLatencyLayout(HostedPlan hosted) {
        this(hosted, 0);
    }

    /** @param signalsBase number of the exchange's first signal */
    LowLatencyLayout(HostedPlan hosted, int signalsBase) {
        this.signalsBase = signalsBase;
        this.hosted = hosted;
        this.plan = hosted.plan();
    }

    /** Returns the size of the window. */
    public long windowBytes() {
        return barrier() + Long.BYTES;
    }

    /** Returns the number of signals that the exchange needs in each context. */
    public int signals() {
        return addressSignal() + LsaMemory.signals() - signalsBase;
    }

    long tokenBytes() {
        return Long.BYTES + plan.tokenBytes();
    }

    long own(int token) {
        return token * tokenBytes();
    }

    long received(int phase, int rank, long index) {
        return slot(1 + phase * plan.ranks() + rank, index);
    }

    long returned(int rank, long index) {
        return slot(1 + PHASES * plan.ranks() + rank, index);
    }

    private long slot(int region, long index) {
        return ((long) region * plan.tokens() + index) * tokenBytes();
    }

    /** Returns the offset of a near rank's number of tokens. The near rank writes it. */
    long count(int phase, int from) {
        return slot(1 + (PHASES + 1) * plan.ranks(), 0) + ((long) phase * hosted.perHost() + from) * Long.BYTES;
    }

    long addresses() {
        return count(PHASES, 0);
    }

    long barrier() {
        return addresses() + LsaMemory.bytes(hosted.perHost());
    }

    int countSignal(int phase, int from) {
        return signalsBase + phase * plan.ranks() + from;
    }

    int addressSignal() {
        return signalsBase + PHASES * plan.ranks();
    }
}
