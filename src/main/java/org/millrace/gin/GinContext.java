package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.GinCells;
import org.millrace.abi.GinIndices;
import org.millrace.abi.GinQueueMemory;
import org.millrace.gin.SignalMemory.PeerSignals;

/**
 * A context as the agent sees it: a queue for each peer, counters and signals. Its memory is made where the context is
 * handed to a kernel; all of it must be reachable by the CPU and belong to a scope that is not closed before the
 * context is.
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
     * A context whose indices are where {@code cis} says.
     *
     * @param cis      4 bytes for each peer
     * @param counters 8 bytes for each counter
     * @param signals  8 bytes for each signal, by the number that descriptors give
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

    /** What has been taken out of its queues and carried out so far; it grows while the context is served. */
    public GinServed served() {
        return served.read();
    }

    /**
     * Lets this rank's agent count up signals of the same context at a peer by itself. To be called before the context
     * is served.
     *
     * @param signals that this process maps; not to be unmapped before the agent has let go of the context
     */
    public void reach(int peer, PeerSignals signals) {
        reached[peer] = signals;
    }

    /** The signals at a peer, if others than frames get there. */
    public @Nullable PeerSignals reached(int peer) {
        return reached[peer];
    }

    /** A signal was counted up at a peer without a frame. */
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

    /** Its signals, by the number that descriptors give. */
    public GinCells signals() {
        return signals;
    }

    PeerQueue queue(int peer) {
        return queues[peer];
    }

    /** Whether nothing is in the queues, or was taken from them and is under way. */
    public boolean isDrained() {
        for (PeerQueue queue : queues) {
            if (!queue.isDrained()) {
                return false;
            }
        }
        return true;
    }

    /** The communicator has failed: completes what is in the queues without carrying it out. On the agent's thread. */
    public void discard() {
        for (PeerQueue queue : queues) {
            queue.discard();
        }
    }

    /** Adds to all signals. On the agent's thread. */
    public void addToSignals(long value) {
        for (int signal = 0; signal < signals.count(); signal++) {
            signals.addRelease(signal, value);
        }
    }

    /** From now on its memory is not touched; called on the agent's thread. */
    public void close() {
        closed = true;
    }

    boolean isClosed() {
        return closed;
    }

    /** Adds to a signal after everything that was written before. */
    public void signal(int signal, long value) {
        if (!closed) {
            signals.addRelease(signal, value);
        }
    }
}
