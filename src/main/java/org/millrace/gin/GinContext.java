package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinCells;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinQueueMemory;
import org.millrace.gin.SignalMemory.PeerSignals;

/**
 * One context: a queue for each peer, counters and signals. The agent reads the queues and updates the counters and
 * signals. The code that gives the context to a kernel also allocates the memory of these parts. The CPU must be able
 * to access all of this memory. The memory must belong to a scope that stays open until the context is closed.
 */
public final class GinContext {

    private final int number;
    private final GinCells counters;
    private final GinCells signals;
    private final PeerQueue[] queues;
    private final @Nullable PeerSignals[] reached;
    private final GinServed.Counters served = new GinServed.Counters();
    private boolean closed;

    /**
     * Creates a context. Each queue starts at the index that {@code cis} contains for its peer.
     *
     * @param cis      consumer indices: 4 bytes for each peer
     * @param counters 8 bytes for each counter
     * @param signals  8 bytes for each signal, in the order of the signal numbers in descriptors
     * @param peers    number of ranks, including this rank
     */
    public GinContext(int number, GinQueueMemory queues, MemorySegment cis, MemorySegment counters,
            MemorySegment signals, int peers) {
        this.number = number;
        this.counters = GinCells.of(counters);
        this.signals = GinCells.of(signals);
        this.queues = new PeerQueue[peers];
        this.reached = new PeerSignals[peers];
        GinIndices indices = GinIndices.of(cis, peers);
        for (int peer = 0; peer < peers; peer++) {
            this.queues[peer] = new PeerQueue(this, peer, queues, indices);
        }
    }

    public int number() {
        return number;
    }

    /**
     * Returns how many of this context's descriptors the agent has served so far, by operation. The numbers grow while
     * the context is served.
     */
    public GinServed served() {
        return served.read();
    }

    /**
     * Allows this rank's agent to increase a peer's signals of this context directly, without a frame. Must be called
     * before the context is served.
     *
     * @param signals the peer's signals in memory that this process maps. The memory must stay mapped until the agent
     *                no longer serves the context.
     */
    public void reach(int peer, PeerSignals signals) {
        reached[peer] = signals;
    }

    /** Returns a peer's signals that this rank can increase without a frame; null if it can increase none. */
    public @Nullable PeerSignals reached(int peer) {
        return reached[peer];
    }

    /** Counts one increase of a peer's signal by this rank without a frame. */
    public void countReached() {
        served.countReached();
    }

    void count(GinDescriptor descriptor) {
        served.count(descriptor);
    }

    public int peers() {
        return queues.length;
    }

    GinCells counters() {
        return counters;
    }

    /** Returns this rank's signals, in the order of the signal numbers in descriptors. */
    public GinCells signals() {
        return signals;
    }

    PeerQueue queue(int peer) {
        return queues[peer];
    }

    /** Returns whether the queues are empty and all descriptors that were taken from them are complete. */
    public boolean isDrained() {
        for (PeerQueue queue : queues) {
            if (!queue.isDrained()) {
                return false;
            }
        }
        return true;
    }

    /**
     * Completes the descriptors in the queues without carrying them out, because the communicator has failed. Agent's
     * thread only.
     */
    public void discard() {
        for (PeerQueue queue : queues) {
            queue.discard();
        }
    }

    /** Adds a value to each of this rank's signals. Agent's thread only. */
    public void addToSignals(long value) {
        for (int signal = 0; signal < signals.count(); signal++) {
            signals.addRelease(signal, value);
        }
    }

    /** Ends all accesses of the agent to the context's memory. Agent's thread only. */
    public void close() {
        closed = true;
    }

    boolean isClosed() {
        return closed;
    }

    /**
     * Adds a value to one of this rank's signals. A release: a kernel that acquires the signal also sees all earlier
     * writes of this thread. Has no effect after {@link #close}.
     */
    public void signal(int signal, long value) {
        if (!closed) {
            signals.addRelease(signal, value);
        }
    }
}
