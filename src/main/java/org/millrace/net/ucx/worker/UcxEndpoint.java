package org.millrace.net.ucx.worker;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;

/**
 * The way from a worker to a peer's, one for all connections between the two. UCX pairs the endpoints of two workers by
 * the order in which each side made them, and what answers a message goes over the endpoint that its sender's is paired
 * with: were there one for each connection, made in another order on the other side, the end of a connection would take
 * from another one the way of its answers.
 */
public final class UcxEndpoint {

    /** The peer's process, if it shares memory with this one. */
    private final @Nullable ProcessIdentity sharing;
    /** What UCX has written something to once the endpoint has failed. */
    private final MemorySegment noticed;

    // Guarded by the worker's turn.
    private long handle;
    private int connections;

    UcxEndpoint(long handle, @Nullable ProcessIdentity sharing, MemorySegment noticed) {
        this.handle = handle;
        this.sharing = sharing;
        this.noticed = noticed;
    }

    /** The endpoint, as UCX's functions take it; 0 when it was given up. With the turn. */
    public long handle() {
        return handle;
    }

    /** Whether it notices that its peer is gone; where memory is shared, UCX has no transport that does. */
    public boolean noticesFailures() {
        return sharing == null;
    }

    /** Whether it has noticed that its peer is gone, or was given up. */
    public boolean hasFailed() {
        return noticed.get(ValueLayout.JAVA_LONG, 0) != 0;
    }

    /**
     * Whether the peer's process shared memory with this one and is no more. UCX does not notice that; what it has to
     * send to that process it will never be able to, and so it does not read our memory again.
     */
    public boolean peerHasEnded() {
        return sharing != null && sharing.isProvablyDead();
    }

    /** Whether nothing comes over it any more. */
    boolean isOver() {
        return hasFailed() || peerHasEnded();
    }

    /** Whether no connection but one uses it. With the turn. */
    public boolean hasOneConnection() {
        return connections == 1;
    }

    /** Counts one connection more, or less; how many there are. */
    int add(int more) {
        connections += more;
        return connections;
    }

    /** To be closed: its handle. */
    long take() {
        long taken = handle;
        handle = 0;
        noticed.set(ValueLayout.JAVA_LONG, 0, 1);
        return taken;
    }
}
