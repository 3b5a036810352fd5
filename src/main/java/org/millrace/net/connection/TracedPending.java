package org.millrace.net.connection;

import org.jspecify.annotations.Nullable;
import org.millrace.net.Pending;
import org.millrace.trace.JoinTrace;

/** A pending connection that appears in the process's trace if it is not made within 100 ms. Safe from any thread. */
public final class TracedPending<T> implements Pending<T> {

    private static final long PERIOD_NANOS = 100_000_000;

    private final Pending<T> pending;
    private final long communicator;
    private final int rank;
    /** Time of the first poll, by {@link System#nanoTime}; 0 before the first poll. */
    private long begun;
    private long nextStore;
    private JoinTrace trace = JoinTrace.NONE;

    /**
     * Creates the object for a connection that is pending. The communicator and the rank have the same meaning as in
     * {@link JoinTrace#connecting}.
     */
    public TracedPending(Pending<T> pending, long communicator, int rank) {
        this.pending = pending;
        this.communicator = communicator;
        this.rank = rank;
    }

    @Override
    public synchronized @Nullable T poll() {
        long now = System.nanoTime();
        begun = begun == 0 ? now : begun;
        if (now - begun >= PERIOD_NANOS && now - nextStore >= 0) {
            nextStore = now + PERIOD_NANOS;
            String description = pending.describe();
            trace = trace == JoinTrace.NONE ? JoinTrace.connecting(communicator, rank, begun, description) : trace;
            trace.activity(description);
        }
        boolean pends = false;
        try {
            T made = pending.poll();
            pends = made == null;
            return made;
        } finally {
            if (!pends) {
                trace.close();
            }
        }
    }

    @Override
    public synchronized void close() {
        pending.close();
        trace.close();
    }
}
