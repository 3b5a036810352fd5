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
 * One of UCX's workers. It has no lock. Instead it has a turn, an atomic flag that one thread holds at a time. A thread
 * that uses the worker takes the turn, and returns it after a few calls.
 *
 * <pre>
 *   free ──compareAndSet──▶ taken     setRelease publishes the thread's writes, also those in UCX's memory; the next
 *        ◀───setRelease────           thread's compareAndSet (acquire) makes them visible to it
 * </pre>
 *
 * The connections of a polling thread share its worker, so that the turn is always free for this thread. Other threads
 * take it only to close a connection, or to run passes as helpers. A thread that polls and finds the turn taken
 * continues with other work.
 */
final class UcxWorker {

    /** Upper limit for the duration of a pass. A thread that holds the turn never waits. */
    private static final long TURN_PATIENCE_NANOS = 10_000_000_000L;
    private static final long RETRY_NANOS = 20_000;
    /** Number of passes between two checks of connections that wait for their peers to leave; a power of two. */
    private static final int LINGER_INTERVAL = 1 << 10;
    /** Time limit for closing an endpoint with connections that are given up. */
    private static final long CLOSE_NANOS = 2_000_000_000L;
    /** Time limit for closing an endpoint that has nothing in flight. */
    private static final long LEAVE_NANOS = 200_000_000L;
    /**
     * Upper limit for the length of every release's parameter structures. UCX reads only the fields in a field mask.
     */
    private static final int PARAMS_BYTES = 1 << 10;

    /**
     * A connection that this side has closed, but that UCX still needs until its peer has the sent data. The thread
     * that holds the turn calls its methods.
     */
    public interface Lingering {

        /** Returns whether the peer has left, or its time is over. */
        boolean isOver();

        /** Releases all resources. */
        void end();
    }

    private final AtomicBoolean taken = new AtomicBoolean();

    // Guarded by the turn.
    private final long handle;
    private final byte[] address;
    private final List<Lingering> lingering = new ArrayList<>();
    /** Endpoints by the peer's address. */
    private final Map<ByteBuffer, UcxEndpoint> endpoints = new HashMap<>();
    /** Memory that endpoints may write to while the worker exists. */
    private final Arena arena = Arena.ofShared();
    private long passes;
    /** Reason why the worker is stopped; null while it may be used. */
    private volatile @Nullable String stopped;
    /** Whether a peer that shared memory with it has ended. */
    private volatile boolean blocked;
    /** Number of connections that use it. */
    private final AtomicInteger connections = new AtomicInteger();
    private boolean destroyed;

    /** Creates a worker that no thread drives yet. */
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

    /** Takes the turn if it is free. Then the caller must {@link #leave}. */
    public boolean tryEnter() {
        return taken.compareAndSet(false, true);
    }

    /** Waits for the turn, which every thread returns soon. Not for calls at every step. */
    public void enter() {
        long start = System.nanoTime();
        while (!tryEnter()) {
            Waiting.pause(RETRY_NANOS);
            if (System.nanoTime() - start > TURN_PATIENCE_NANOS) {
                throw new ConnectionException("a UCX worker was not given back in 10 s: a call of UCX does not return");
            }
        }
    }

    /** Returns the turn. */
    public void leave() {
        taken.setRelease(false);
    }

    /** Returns the worker, as UCX's functions take it. */
    public long handle() {
        return handle;
    }

    /** Returns the worker's address for peers. Do not change the array. */
    public byte[] address() {
        return address;
    }

    /** Returns the number of passes that drove the worker. Requires the turn. */
    public long passes() {
        return passes;
    }

    /** Lets UCX do its work that needs no waiting. Returns more than 0 if it did work. Requires the turn. */
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

    /** Keeps a connection until its peer has left. Requires the turn. */
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

    /** Returns whether UCX may be called for this worker. */
    public boolean runs() {
        return stopped == null;
    }

    /**
     * Stops all use of this worker, because it might read memory that is about to be freed. Its connections are lost.
     */
    public void stop(String why) {
        stopped = why;
    }

    /**
     * Prevents new connections for this worker. A process that shared memory with it has ended, perhaps in the middle
     * of a message. UCX's queue in that memory then has a slot that is never filled, and no later message arrives.
     */
    public void block() {
        blocked = true;
    }

    /** Returns whether new connections may use it. */
    boolean isFit() {
        return !blocked && runs();
    }

    /** Adds to the number of connections, 1 or -1. */
    public void use(int more) {
        connections.addAndGet(more);
    }

    /**
     * Destroys the worker if no connection uses it or waits for its peer to leave. Otherwise returns false.
     */
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
     * Returns the endpoint to a peer's worker, and counts another connection. Requires the turn.
     *
     * @param peer    the other worker's {@link #address}
     * @param sharing the peer's process if the two processes share memory. The endpoint then does not detect the loss
     *                of its peer. Both ends must agree.
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
            // UCX requires a function that it calls with an address of ours when the endpoint fails. The C library's
            // time() stores the time there. C thus need not call a Java function.
            ucp_ep_params.err_handler_cb(params, CFunction.named("time").address());
            ucp_ep_params.err_handler_arg(params, noticed.address());
            MemorySegment result = confined.allocate(ValueLayout.JAVA_LONG);
            UcxLibrary.check(ucp_h.ucp_ep_create(handle, params.address(), result.address()),
                    "find a transport to the peer (UCX_TLS and UCX_NET_DEVICES must have one in common on both sides)");
            return result.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /**
     * Removes a connection from an endpoint. The endpoint stays for later connections, paired with the peer's, until
     * the peer has left. Requires the turn.
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
     * Closes an endpoint that {@linkplain UcxEndpoint#noticesFailures detects failures} at once, with all its messages
     * in flight. All its connections are lost. Requires the turn.
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

    /**
     * Waits until all data passed to an endpoint has left this process. Returns false if it has failed, or the time is
     * over first. Requires the turn.
     */
    public boolean flush(long endpoint, long nanos) {
        try (Arena arena = Arena.ofConfined()) {
            return finish(ucp_h.ucp_ep_flush_nbx(endpoint, ucp_request_param.allocate(arena).address()), nanos);
        }
    }

    /**
     * Drives the worker until a request is complete, and frees it. Returns false if it has failed, or the time is over
     * first.
     */
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

    /**
     * Destroys the worker, and ends the connections that wait for their peers to leave. All others are closed already.
     */
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
     * The endpoint from a worker to a peer's worker, one for all connections between the two. UCX pairs the endpoints
     * of two workers by the order of their creation on each side. The answers to a message use the endpoint that is
     * paired with its sender's endpoint. Suppose that each connection had its own endpoint, and that the two sides
     * created them in different orders. The end of one connection would then close the endpoint that carries another
     * connection's answers.
     */
    public static final class UcxEndpoint {

        /** The peer's process, if it shares memory with this one. */
        private final @Nullable ProcessIdentity sharing;
        /** Memory that UCX writes to once the endpoint has failed. */
        private final MemorySegment noticed;

        // Guarded by the worker's turn.
        private long handle;
        private int connections;

        UcxEndpoint(long handle, @Nullable ProcessIdentity sharing, MemorySegment noticed) {
            this.handle = handle;
            this.sharing = sharing;
            this.noticed = noticed;
        }

        /** Returns the endpoint, as UCX's functions take it; 0 when it was given up. Requires the turn. */
        public long handle() {
            return handle;
        }

        /** Returns whether the endpoint detects the loss of its peer. UCX has no such transport over shared memory. */
        public boolean noticesFailures() {
            return sharing == null;
        }

        /** Returns whether it has detected the loss of its peer, or was given up. */
        public boolean hasFailed() {
            return noticed.get(ValueLayout.JAVA_LONG, 0) != 0;
        }

        /**
         * Returns whether the peer's process shared memory with this one and has ended. UCX does not detect that. It
         * can never send to that process again, and so does not read our memory again.
         */
        public boolean peerHasEnded() {
            return sharing != null && sharing.isProvablyDead();
        }

        /** Returns whether it has failed, or the peer has ended. */
        boolean isOver() {
            return hasFailed() || peerHasEnded();
        }

        /** Returns whether exactly one connection uses it. Requires the turn. */
        public boolean hasOneConnection() {
            return connections == 1;
        }

        /** Adds to the number of connections. Returns their number. */
        int add(int more) {
            connections += more;
            return connections;
        }

        /** Takes the handle, to close the endpoint. Returns the handle; 0 if it was taken before. */
        long take() {
            long taken = handle;
            handle = 0;
            noticed.set(ValueLayout.JAVA_LONG, 0, 1);
            return taken;
        }
    }
}
