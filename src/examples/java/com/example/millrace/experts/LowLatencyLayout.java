package com.example.millrace.experts;

import org.millrace.device.gin.LsaMemory;

/**
 * Where things lie in the window of an exchange with low latency, on every rank alike, and which signals it uses. Every
 * rank has room for all tokens of each other one, so that nobody waits for a head to move. A token begins with its
 * number.
 *
 * <pre>
 *   own        slots: the tokens of this rank
 *   received   by rank, slots: tokens of others; then what their experts made of this rank's
 *   returned   by rank, slots: what this rank's experts made
 *   counts     by phase and near rank, 8 bytes each
 *   addresses  what near ranks tell of their windows
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

    /** The layout for a plan. */
    public LowLatencyLayout(HostedPlan hosted) {
        this(hosted, 0);
    }

    /** @param signalsBase the first of its signals */
    LowLatencyLayout(HostedPlan hosted, int signalsBase) {
        this.signalsBase = signalsBase;
        this.hosted = hosted;
        this.plan = hosted.plan();
    }

    /** Size of the window. */
    public long windowBytes() {
        return barrier() + Long.BYTES;
    }

    /** Signals that are needed in each context. */
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

    /** How many tokens came, written by a near rank. */
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
