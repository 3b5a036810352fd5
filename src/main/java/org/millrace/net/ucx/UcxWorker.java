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
 * A UCX worker. Only one thread at a time may use it. Its lock is an atomic flag: a thread locks the worker, makes a
 * few calls, and unlocks it.
 *
 * <pre>
 *   free ──compareAndSet──▶ locked    setRelease publishes the thread's writes, also those in UCX's memory. The next
 *        ◀───setRelease────           thread's compareAndSet (acquire) makes them visible to that thread
 * </pre>
 *
 * All connections of a polling thread use the same worker, so this thread usually finds the worker unlocked. Other
 * threads lock it only to close a connection, or to make passes as helpers. A thread that polls and finds the worker
 * locked does not wait, and continues with other work.
 */
final class UcxWorker {

    /**
     * Time limit for {@link #enter}, in nanoseconds. A thread that holds the lock does not wait, so every pass is
     * shorter than this limit.
     */
    private static final long TURN_TIMEOUT_NANOS = 10_000_000_000L;
    private static final long RETRY_NANOS = 20_000;
    /** Number of passes between two checks of the {@link #lingering} connections; a power of two. */
    private static final int LINGER_INTERVAL = 1 << 10;
    /** Time limit for closing an endpoint that is given up, in nanoseconds. */
    private static final long CLOSE_NANOS = 2_000_000_000L;
    /** Time limit for closing an endpoint without messages in flight, in nanoseconds. */
    private static final long LEAVE_NANOS = 200_000_000L;
    /**
     * Length of the memory for a parameter structure of a UCX call, in bytes. This length is sufficient for every UCX
     * release. UCX reads only the fields that a field mask names.
     */
    private static final int PARAMS_BYTES = 1 << 10;

    /**
     * A connection that this side has closed. Its UCX resources stay until the peer has received the sent data. The
     * thread that holds the worker's lock calls the methods of this type.
     */
    public interface Lingering {

        /** Returns whether the peer has closed the connection, or the time limit has passed. */
        boolean isOver();

        /** Releases all resources of the connection. */
        void end();
    }

    private final AtomicBoolean taken = new AtomicBoolean();

    // The lock guards the following fields.
    private final long handle;
    private final byte[] address;
    private final List<Lingering> lingering = new ArrayList<>();
    /** Endpoints, by the address of the peer's worker. */
    private final Map<ByteBuffer, UcxEndpoint> endpoints = new HashMap<>();
    /** Memory that UCX may write to when an endpoint fails. The memory exists as long as the worker. */
    private final Arena arena = Arena.ofShared();
    private long passes;
    /** Reason why the worker is stopped; null while it may be used. */
    private volatile @Nullable String stopped;
    /** Whether new connections must not use the worker, because a peer that shared memory with the worker has ended. */
    private volatile boolean blocked;
    private final AtomicInteger connections = new AtomicInteger();
    private boolean destroyed;

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
            UcxLibrary.check(named, "return a worker's address");
            long bytes = results.get(ValueLayout.JAVA_LONG, 0);
            long length = results.get(ValueLayout.JAVA_LONG, Long.BYTES);
            address = NativeRegion.ALL_MEMORY.asSlice(bytes, length).toArray(ValueLayout.JAVA_BYTE);
            ucp_h.ucp_worker_release_address(handle, bytes);
        }
    }

    /** Locks the worker if it is unlocked. Returns whether the caller holds the lock and must call {@link #leave}. */
    public boolean tryEnter() {
        return taken.compareAndSet(false, true);
    }

    /**
     * Locks the worker, and waits while another thread holds the lock. This method is too slow for a call at every
     * step.
     */
    public void enter() {
        long start = System.nanoTime();
        while (!tryEnter()) {
            Waiting.pause(RETRY_NANOS);
            if (System.nanoTime() - start > TURN_TIMEOUT_NANOS) {
                throw new ConnectionException(
                        "a UCX worker was not released within 10 s: a call of UCX does not return");
            }
        }
    }

    public void leave() {
        taken.setRelease(false);
    }

    public long handle() {
        return handle;
    }

    /** Returns the address of the worker, for peers. The caller must not change the array. */
    public byte[] address() {
        return address;
    }

    /** Returns the number of times that the worker was driven. The caller must hold the lock. */
    public long passes() {
        return passes;
    }

    /**
     * Drives the worker: UCX makes as much progress as is possible without blocking. Returns more than 0 if there was
     * progress. The caller must hold the lock.
     */
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

    /** Keeps the resources of a closed connection until its peer has closed, too. The caller must hold the lock. */
    public void keep(Lingering one) {
        endThoseThatAreOver();
        lingering.add(one);
    }

    public void checkRuns() {
        String why = stopped;
        if (why != null) {
            throw new ConnectionException(why);
        }
    }

    /** Returns whether UCX may be called for this worker; false after the worker was stopped. */
    public boolean runs() {
        return stopped == null;
    }

    /**
     * Stops all use of this worker. Called when UCX may still access memory that the owner of the memory frees next.
     * All connections of the worker are lost.
     *
     * @param why reason, for the exceptions that these connections throw
     */
    public void stop(String why) {
        stopped = why;
    }

    /**
     * Prevents new connections for this worker. Called when a process that shared memory with the worker has ended,
     * perhaps during the write of a message. UCX's queue in that memory then has an entry that is never completed, so
     * no later message can arrive.
     */
    public void block() {
        blocked = true;
    }

    /** Returns whether new connections may use the worker. */
    boolean isFit() {
        return !blocked && runs();
    }

    /**
     * Changes the number of connections.
     *
     * @param more number to add: 1 for a new connection, -1 for a closed connection
     */
    public void use(int more) {
        connections.addAndGet(more);
    }

    /**
     * Destroys the worker if no connection uses it, and no closed connection is {@link #lingering}. Returns whether it
     * was destroyed.
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
     * Returns the endpoint to a peer's worker, and adds a connection to this endpoint. Creates the endpoint if
     * necessary. The caller must hold the lock.
     *
     * @param peer    {@link #address} of the peer's worker
     * @param sharing the peer's process; null if this process and the peer's process share no memory. If the processes
     *                share memory, the endpoint does not detect the loss of its peer. Either both ends must pass a
     *                process, or both ends must pass null.
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
            // UCX requires a C function that it calls with a given address when the endpoint fails. The function time()
            // of the C library stores the current time at this address. UCX therefore need not call a Java function.
            ucp_ep_params.err_handler_cb(params, CFunction.named("time").address());
            ucp_ep_params.err_handler_arg(params, noticed.address());
            MemorySegment result = confined.allocate(ValueLayout.JAVA_LONG);
            UcxLibrary.check(ucp_h.ucp_ep_create(handle, params.address(), result.address()),
                    "find a transport to the peer (UCX_TLS and UCX_NET_DEVICES must have one in common on both sides)");
            return result.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /**
     * Removes a connection from an endpoint. An endpoint without connections stays for later connections until it has
     * failed or the peer has ended. The endpoint stays because an endpoint of the peer is paired with it, see
     * {@link UcxEndpoint}. The caller must hold the lock.
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
     * Closes an endpoint without completing its messages in flight. All its connections are lost. Waits a limited time
     * for UCX to close the endpoint. The endpoint must {@linkplain UcxEndpoint#noticesFailures detect failures}. The
     * caller must hold the lock.
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
     * Waits until all data that was sent to an endpoint has left this process. Returns false after a failure, or when
     * the time limit has passed. The caller must hold the lock.
     */
    public boolean flush(long endpoint, long nanos) {
        try (Arena arena = Arena.ofConfined()) {
            return finish(ucp_h.ucp_ep_flush_nbx(endpoint, ucp_request_param.allocate(arena).address()), nanos);
        }
    }

    /**
     * Drives the worker until a request is complete, and frees the request. Returns false after a failure, or when the
     * time limit has passed.
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
        ucp_h.ucp_request_free(request); // After its release, a request stays valid inside UCX until it is complete.
        return status == ucp_h.UCS_OK();
    }

    /** Destroys the worker. Ends the {@link #lingering} connections first. All other connections must be closed. */
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
     * The endpoint from a worker to a peer's worker, for all connections between the two workers. UCX pairs the
     * endpoints of two workers: the n-th created endpoint of one side and the n-th created endpoint of the other side
     * form a pair. The answer to a message uses the endpoint that is paired with the sender's endpoint. If each
     * connection had its own endpoint, the two sides could create the endpoints in different orders. The close of one
     * connection could then close the endpoint that carries another connection's answers.
     */
    public static final class UcxEndpoint {

        /** The peer's process, if it shares memory with this process; otherwise null. */
        private final @Nullable ProcessIdentity sharing;
        /** Word that is 0 until the endpoint has failed or was given up. UCX writes to it when the endpoint fails. */
        private final MemorySegment noticed;

        // The worker's lock guards the following fields.
        private long handle;
        private int connections;

        UcxEndpoint(long handle, @Nullable ProcessIdentity sharing, MemorySegment noticed) {
            this.handle = handle;
            this.sharing = sharing;
            this.noticed = noticed;
        }

        /**
         * Returns the handle of the endpoint, for calls of UCX; 0 if the endpoint was given up. The caller must hold
         * the worker's lock.
         */
        public long handle() {
            return handle;
        }

        /**
         * Returns whether the endpoint detects the loss of its peer. An endpoint over shared memory does not detect the
         * loss, because no shared-memory transport of UCX supports that.
         */
        public boolean noticesFailures() {
            return sharing == null;
        }

        /** Returns whether the endpoint has detected the loss of its peer, or was given up. */
        public boolean hasFailed() {
            return noticed.get(ValueLayout.JAVA_LONG, 0) != 0;
        }

        /**
         * Returns whether the peer's process has ended, if it shared memory with this process; false otherwise. UCX
         * itself does not detect the end of the process. After this end, UCX can no longer send to the peer, and
         * therefore no longer reads this process's memory.
         */
        public boolean peerHasEnded() {
            return sharing != null && sharing.isProvablyDead();
        }

        /** Returns whether the endpoint has failed, or the peer's process has ended. */
        boolean isOver() {
            return hasFailed() || peerHasEnded();
        }

        /** Returns whether exactly one connection uses the endpoint. The caller must hold the worker's lock. */
        public boolean hasOneConnection() {
            return connections == 1;
        }

        /**
         * Changes the number of connections, and returns the new number.
         *
         * @param more number to add, which may be negative or 0
         */
        int add(int more) {
            connections += more;
            return connections;
        }

        /**
         * Removes the handle, so that the endpoint is closed only once. Returns the handle; 0 if it was already
         * removed.
         */
        long take() {
            long taken = handle;
            handle = 0;
            noticed.set(ValueLayout.JAVA_LONG, 0, 1);
            return taken;
        }
    }
}
