package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.GinCells;
import org.millrace.abi.GinIndices;
import org.millrace.abi.GinQueueMemory;
import org.millrace.gin.SignalMemory.PeerSignals;

/**
 * A context as the agent sees it: a queue for each peer, counters and signals. The code that hands the context to a
 * kernel allocates its memory. The CPU must be able to access all of the memory. It must belong to a scope that is not
 * closed before the context is.
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
     * Creates a context that starts at the indices in {@code cis}.
     *
     * @param cis      4 bytes for each peer
     * @param counters 8 bytes for each counter
     * @param signals  8 bytes for each signal, in the order of the signal numbers in descriptors
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
     * Returns the numbers of descriptors that were taken out of its queues and carried out so far. The numbers grow
     * while the context is served.
     */
    public GinServed served() {
        return served.read();
    }

    /**
     * Lets this rank's agent increase the signals of the same context at a peer without a frame. Must be called before
     * the context is served.
     *
     * @param signals signals that this process maps; they must stay mapped until the agent no longer serves the context
     */
    public void reach(int peer, PeerSignals signals) {
        reached[peer] = signals;
    }

    /** Returns the signals at a peer that this rank can increase without a frame, or null. */
    public @Nullable PeerSignals reached(int peer) {
        return reached[peer];
    }

    /** Records that a signal at a peer was increased without a frame. */
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

    /** Returns its signals, in the order of the signal numbers in descriptors. */
    public GinCells signals() {
        return signals;
    }

    PeerQueue queue(int peer) {
        return queues[peer];
    }

    /** Returns whether the queues are empty and no descriptor that was taken from them is in flight. */
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

    /** Adds to all signals. Agent's thread only. */
    public void addToSignals(long value) {
        for (int signal = 0; signal < signals.count(); signal++) {
            signals.addRelease(signal, value);
        }
    }

    /** Stops all accesses to the context's memory from now on. Agent's thread only. */
    public void close() {
        closed = true;
    }

    boolean isClosed() {
        return closed;
    }

    /** Adds to a signal, after all earlier writes of this thread. */
    public void signal(int signal, long value) {
        if (!closed) {
            signals.addRelease(signal, value);
        }
    }
}
