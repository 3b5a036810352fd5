package org.millrace.net.ucx;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.Waiting;
import org.millrace.ffi.ucx.ucp_ep_params;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.ffi.ucx.ucp_request_param;
import org.millrace.ffi.ucx.ucp_worker_params;
import org.millrace.file.ProcessIdentity;
import org.millrace.foreign.CFunction;
import org.millrace.net.ConnectionException;
import org.millrace.net.connection.NativeRegion;

/**
 * One of UCX's workers. It has no lock of its own: a thread that wants something of it takes the turn, and gives it
 * back after its few calls.
 *
 * <pre>
 *   free ──compareAndSet──▶ taken     what a thread wrote, in UCX's memory too, before it set it free (release) the next
 *        ◀───setRelease────           one sees (the compareAndSet's acquire)
 * </pre>
 *
 * The connections of a polling thread share its worker, so that the turn is always free for it; only when a connection
 * is closed, or when passes are run by threads that help, does another one come. Who polls and finds the turn taken
 * goes on to something else.
 */
final class UcxWorker {

    /** As long as any pass may take; a thread that has the turn never waits. */
    private static final long TURN_PATIENCE_NANOS = 10_000_000_000L;
    private static final long RETRY_NANOS = 20_000;
    /** Passes between two looks at connections that wait for their peers to go; a power of two. */
    private static final int LINGER_INTERVAL = 1 << 10;
    /** How long the end of an endpoint may take whose connections are given up. */
    private static final long CLOSE_NANOS = 2_000_000_000L;
    /** The same of one that has nothing under way. */
    private static final long LEAVE_NANOS = 200_000_000L;
    /** Longer than any structure of parameters of any release: what is not in a field mask is not read. */
    private static final int PARAMS_BYTES = 1 << 10;

    /**
     * A connection that was closed on this side, and whose end of UCX must stay until its peer has what was sent.
     * Called by the thread that has the turn.
     */
    public interface Lingering {

        /** Whether the peer is gone, or has had time enough. */
        boolean isOver();

        /** Gives everything back. */
        void end();
    }

    private final AtomicBoolean taken = new AtomicBoolean();

    // Guarded by the turn, all of it.
    private final long handle;
    private final byte[] address;
    private final List<Lingering> lingering = new ArrayList<>();
    /** By the peer's address. */
    private final Map<ByteBuffer, UcxEndpoint> endpoints = new HashMap<>();
    /** Memory that endpoints may write to as long as there is a worker. */
    private final Arena arena = Arena.ofShared();
    private long passes;
    /** Why nothing may be done with it any more; null while all is well. */
    private volatile @Nullable String stopped;
    /** Whether a peer that shared memory with it has ended. */
    private volatile boolean blocked;
    /** Connections that use it. */
    private final AtomicInteger connections = new AtomicInteger();
    private boolean destroyed;

    /** A worker that nobody drives yet. */
    UcxWorker(UcxContext context) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment params = arena.allocate(PARAMS_BYTES, Long.BYTES);
            ucp_worker_params.field_mask(params, ucp_h.UCP_WORKER_PARAM_FIELD_THREAD_MODE());
            ucp_worker_params.thread_mode(params, ucp_h.UCS_THREAD_MODE_SERIALIZED());
            MemorySegment results = arena.allocate(ValueLayout.JAVA_LONG, 2);
            int status = ucp_h.ucp_worker_create(context.handle(), params.address(), results.address());
            handle = UcxLibrary.made(status, results.get(ValueLayout.JAVA_LONG, 0), "make a worker");
            int named = ucp_h.ucp_worker_get_address(handle, results.address(), results.address() + Long.BYTES);
            if (named != 0) {
                ucp_h.ucp_worker_destroy(handle);
            }
            UcxLibrary.check(named, "say where a worker is");
            long bytes = results.get(ValueLayout.JAVA_LONG, 0);
            long length = results.get(ValueLayout.JAVA_LONG, Long.BYTES);
            address = NativeRegion.ALL_MEMORY.asSlice(bytes, length).toArray(ValueLayout.JAVA_BYTE);
            ucp_h.ucp_worker_release_address(handle, bytes);
        }
    }

    /** Takes the turn if it is free; then the caller must {@link #leave}. */
    public boolean tryEnter() {
        return taken.compareAndSet(false, true);
    }

    /** Waits for the turn, which nobody has for long; for what is not done at every step. */
    public void enter() {
        long start = System.nanoTime();
        while (!tryEnter()) {
            Waiting.pause(RETRY_NANOS);
            if (System.nanoTime() - start > TURN_PATIENCE_NANOS) {
                throw new ConnectionException("a UCX worker was not given back in 10 s: a call of UCX does not return");
            }
        }
    }

    /** Gives the turn back. */
    public void leave() {
        taken.setRelease(false);
    }

    /** The worker, as UCX's functions take it. */
    public long handle() {
        return handle;
    }

    /** Where peers reach it: not to be changed. */
    public byte[] address() {
        return address;
    }

    /** How often it was driven. With the turn. */
    public long passes() {
        return passes;
    }

    /** Lets UCX move what it can without waiting; more than 0 if anything happened. With the turn. */
    public int drive() {
        passes++;
        if ((passes & LINGER_INTERVAL - 1) == 0 && !lingering.isEmpty()) {
            endThoseThatAreOver();
        }
        return ucp_h.ucp_worker_progress(handle);
    }

    private void endThoseThatAreOver() {
        lingering.removeIf(one -> {
            boolean over = one.isOver();
            if (over) {
                one.end();
            }
            return over;
        });
    }

    /** Keeps a connection until its peer is gone. With the turn. */
    public void keep(Lingering one) {
        endThoseThatAreOver();
        lingering.add(one);
    }

    /** Throws if the worker was {@link #stop stopped}. */
    public void checkRuns() {
        String why = stopped;
        if (why != null) {
            throw new ConnectionException(why);
        }
    }

    /** Whether UCX may be asked anything about this worker. */
    public boolean runs() {
        return stopped == null;
    }

    /**
     * Nothing is done with this worker any more, as it might read memory that is about to be freed: its connections are
     * lost.
     */
    public void stop(String why) {
        stopped = why;
    }

    /**
     * No new connections for this worker: a process that shared memory with it has ended, perhaps in the middle of a
     * message. UCX's queue in that memory then has a place that nobody fills, and nothing comes behind it.
     */
    public void block() {
        blocked = true;
    }

    /** Whether new connections may use it. */
    boolean isFit() {
        return !blocked && runs();
    }

    /** Counts one connection more, or less. */
    public void use(int more) {
        connections.addAndGet(more);
    }

    /** Ends it, if no connection uses it any more and none waits for its peer to go; false if not. */
    boolean destroyIfUnused() {
        enter();
        try {
            endThoseThatAreOver();
        } finally {
            leave();
        }
        boolean unused = connections.get() == 0;
        if (unused) {
            destroy();
        }
        return unused;
    }

    /**
     * The endpoint to a peer's worker, for one connection more. With the turn.
     *
     * @param peer    what the other worker's {@link #address} has
     * @param sharing the peer's process if the two share memory: then the endpoint does not notice that its peer is
     *                gone; both ends must say the same
     */
    public UcxEndpoint connect(MemorySegment peer, @Nullable ProcessIdentity sharing) {
        endpoints.values().removeIf(one -> one.isOver() && closeUnused(one));
        ByteBuffer key = ByteBuffer.wrap(peer.toArray(ValueLayout.JAVA_BYTE));
        UcxEndpoint endpoint = endpoints.get(key);
        if (endpoint == null || endpoint.isOver()) {
            MemorySegment noticed = arena.allocate(Long.BYTES, Long.BYTES);
            endpoint = new UcxEndpoint(create(peer, sharing == null, noticed), sharing, noticed);
            endpoints.put(key, endpoint);
        }
        endpoint.add(1);
        return endpoint;
    }

    private long create(MemorySegment peer, boolean failures, MemorySegment noticed) {
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment params = confined.allocate(PARAMS_BYTES, Long.BYTES);
            ucp_ep_params.field_mask(params, ucp_h.UCP_EP_PARAM_FIELD_REMOTE_ADDRESS()
                    | ucp_h.UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE() | ucp_h.UCP_EP_PARAM_FIELD_ERR_HANDLER());
            ucp_ep_params.address(params, peer.address());
            ucp_ep_params.err_mode(params,
                    failures ? ucp_h.UCP_ERR_HANDLING_MODE_PEER() : ucp_h.UCP_ERR_HANDLING_MODE_NONE());
            // UCX wants a function that it calls when the endpoint fails, with an address of ours. The C library's
            // time() stores the time there, and no function of Java's has to be called from C.
            ucp_ep_params.err_handler_cb(params, CFunction.named("time").address());
            ucp_ep_params.err_handler_arg(params, noticed.address());
            MemorySegment result = confined.allocate(ValueLayout.JAVA_LONG);
            UcxLibrary.check(ucp_h.ucp_ep_create(handle, params.address(), result.address()),
                    "find a transport to the peer (UCX_TLS and UCX_NET_DEVICES must have one in common on both sides)");
            return result.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /**
     * A connection uses it no more. It stays for the next ones, paired as it is with the peer's, until the peer is
     * gone. With the turn.
     */
    public void disconnect(UcxEndpoint endpoint) {
        blocked |= endpoint.peerHasEnded();
        if (endpoint.add(-1) == 0 && endpoint.isOver()) {
            endpoints.values().remove(endpoint);
            close(endpoint, 0);
        }
    }

    private boolean closeUnused(UcxEndpoint endpoint) {
        boolean unused = endpoint.add(0) == 0;
        if (unused) {
            close(endpoint, 0);
        }
        return unused;
    }

    /**
     * Closes an endpoint that {@linkplain UcxEndpoint#noticesFailures notices failures} at once, with all that is under
     * way on it: all its connections are lost. With the turn.
     */
    public void giveUp(UcxEndpoint endpoint) {
        close(endpoint, CLOSE_NANOS);
    }

    private void close(UcxEndpoint endpoint, long nanos) {
        long taken = endpoint.take();
        if (taken == 0) {
            return;
        }
        try (Arena confined = Arena.ofConfined()) {
            MemorySegment param = ucp_request_param.allocate(confined);
            ucp_request_param.op_attr_mask(param, ucp_h.UCP_OP_ATTR_FIELD_FLAGS());
            ucp_request_param.flags(param, endpoint.noticesFailures() ? ucp_h.UCP_EP_CLOSE_FLAG_FORCE() : 0);
            finish(ucp_h.ucp_ep_close_nbx(taken, param.address()), nanos);
        }
    }

    /** Waits until all that was given to an endpoint has left this process. With the turn. */
    public boolean flush(long endpoint, long nanos) {
        try (Arena arena = Arena.ofConfined()) {
            return finish(ucp_h.ucp_ep_flush_nbx(endpoint, ucp_request_param.allocate(arena).address()), nanos);
        }
    }

    /** Drives the worker until a request is complete, and frees it; false if the time is over first. */
    private boolean finish(long request, long nanos) {
        if (UcxLibrary.isStatus(request)) {
            return request == 0;
        }
        long start = System.nanoTime();
        int status = ucp_h.ucp_request_check_status(request);
        while (status == ucp_h.UCS_INPROGRESS() && System.nanoTime() - start < nanos) {
            passes++;
            int ignored = ucp_h.ucp_worker_progress(handle);
            status = ucp_h.ucp_request_check_status(request);
        }
        ucp_h.ucp_request_free(request); // UCX itself keeps it until it is complete
        return status == ucp_h.UCS_OK();
    }

    /** Ends it, with the connections that wait for their peers to go; all others are closed. */
    void destroy() {
        enter();
        try {
            if (!destroyed) {
                destroyed = true;
                if (stopped == null) {
                    lingering.forEach(Lingering::end);
                    endpoints.values().forEach(one -> close(one, one.isOver() ? 0 : LEAVE_NANOS));
                    ucp_h.ucp_worker_destroy(handle);
                    arena.close();
                }
                stop("the UCX network was closed");
            }
        } finally {
            leave();
        }
    }

    /**
     * The way from a worker to a peer's, one for all connections between the two. UCX pairs the endpoints of two
     * workers by the order in which each side made them, and what answers a message goes over the endpoint that its
     * sender's is paired with: were there one for each connection, made in another order on the other side, the end of
     * a connection would take from another one the way of its answers.
     */
    public static final class UcxEndpoint {

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
         * Whether the peer's process shared memory with this one and is no more. UCX does not notice that; what it has
         * to send to that process it will never be able to, and so it does not read our memory again.
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
}
