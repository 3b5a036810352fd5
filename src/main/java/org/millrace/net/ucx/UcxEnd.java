package org.millrace.net.ucx;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.security.SecureRandom;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.ConnectionException;
import org.millrace.net.LastWordsException;
import org.millrace.net.PeerClosedException;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.shm.SharedMemory;
import org.millrace.net.ucx.UcxWorker.UcxEndpoint;

/** Common part of the two ends of a connection: a worker, an endpoint, requests, and their release. */
abstract class UcxEnd extends ConnectionState {

    /** Time that a failure of UCX waits for the peer's own messages, which explain more and arrive over TCP. */
    private static final long LAST_WORDS_NANOS = 1_000_000_000L;
    /** Time limit for the end of a connection with a peer that takes part in it. */
    static final long CLOSE_NANOS = 2_000_000_000L;
    /** Time limit for sent data to leave this process. */
    static final long FLUSH_NANOS = 200_000_000L;

    /** Position of the PID namespace in the flags: the bits from here on contain its number. */
    private static final int NAMESPACE_SHIFT = 8;
    /** Stored in place of a request or a length. Requests are addresses, and greater than 0. */
    static final long FAILED = -1;
    static final long UNDER_WAY = -2;

    private static final SecureRandom RANDOM = new SecureRandom();

    /** Memory passed to UCX. It is freed when UCX has no more requests in it. */
    final Arena arena = Arena.ofShared();
    /** Parameters of a message in that memory. */
    final long plainSend = UcxRegion.param(arena, 0, 0);
    /** Parameters of a message that is sent at once, whatever its length, without asking the receiver first. */
    final long eagerSend = UcxRegion.param(arena, 0, ucp_h.UCP_OP_ATTR_FLAG_FAST_CMPL());
    final long plainReceive = UcxRegion.param(arena, 0, ucp_h.UCP_OP_ATTR_FLAG_NO_IMM_CMPL());
    /** Tag and length of a received message. */
    final long received = arena.allocate(2 * Long.BYTES, Long.BYTES).address();
    private final UcxWorkers workers;
    private @Nullable UcxWorker worker;
    private @Nullable UcxEndpoint endpoint;
    private long passesSeen;
    private @Nullable String failed;
    private long failedAt;

    UcxEnd(OpenResources network, String name, String peer, UcxWorkers workers) {
        super(network, name, peer);
        this.workers = workers;
    }

    static long newTag() {
        return RANDOM.nextLong() & UcxFormat.TAG_MASK;
    }

    /** Returns the worker. Call it only after {@link #enter} or {@link #tryEnter}. */
    final UcxWorker worker() {
        return worker;
    }

    /**
     * Takes the turn of the worker, which belongs to the first thread that polls this connection. Returns false if
     * another thread has the turn.
     */
    final boolean tryEnter() {
        UcxWorker mine = worker;
        if (mine == null) {
            mine = workers.ofThisThread();
            worker = mine;
        }
        mine.checkRuns();
        return mine.tryEnter();
    }

    final boolean hasWorker() {
        return worker != null;
    }

    /**
     * Drives the worker, unless another connection has driven it since the last call. A pass over many connections thus
     * drives it once.
     */
    final int drive(UcxWorker mine) {
        int work = 0;
        if (mine.passes() == passesSeen) {
            work = mine.drive();
        }
        passesSeen = mine.passes();
        return work;
    }

    // The endpoint

    final boolean hasEndpoint() {
        return endpoint != null;
    }

    /** Returns whether the endpoint detects the loss of the peer. Call it after {@link #connect}. */
    final boolean noticesFailures() {
        return endpoint.noticesFailures();
    }

    /** Returns the endpoint to send to. Throws if it was given up. The caller must hold the worker's turn. */
    final long endpoint() {
        long handle = endpoint.handle();
        if (handle == 0) {
            throw lost("another connection to the same process was closed, and the peer did not let go of it in time",
                    null);
        }
        return handle;
    }

    /**
     * Returns the length in bytes of a receiver's buffers for the transport between the two processes. Call it after
     * {@link #connect}.
     */
    final int bufferBytes() {
        return !noticesFailures() ? UcxFormat.SHARED_BUFFER_BYTES
                : workers.context().reachesRemoteMemory() ? UcxFormat.CARD_BUFFER_BYTES : UcxFormat.TCP_BUFFER_BYTES;
    }

    final long flags() {
        return ProcessIdentity.CURRENT.namespace() << NAMESPACE_SHIFT
                | (workers.context().sharesMemory() ? UcxFormat.SHARES_MEMORY : 0);
    }

    /** Connects to the peer's worker. The caller must hold the worker's turn. */
    final void connect(MemorySegment address, long host, long peersFlags, long pid, long startTicks) {
        boolean shared = host == SharedMemory.thisHost() && (flags() & peersFlags & UcxFormat.SHARES_MEMORY) != 0;
        try {
            endpoint = worker().connect(address,
                    shared ? new ProcessIdentity(pid, startTicks, peersFlags >>> NAMESPACE_SHIFT) : null);
        } catch (ConnectionException e) {
            throw fail(new ConnectionException(this + ": " + e.getMessage(), e));
        }
    }

    /**
     * Waits a limited time until the data passed to UCX has left this process. The caller must hold the worker's turn.
     */
    final void flush() {
        if (endpoint != null && endpoint.handle() != 0 && !peerHasEnded()) {
            worker().flush(endpoint.handle(), FLUSH_NANOS);
        }
    }

    /**
     * Makes UCX release all messages. The peer helps with that if it can. If it does not, and UCX detects failures of
     * the endpoint, all connections between the two workers are given up. The caller must hold the worker's turn.
     *
     * @param safe whether the peer no longer reads or writes shared memory
     * @return false if UCX still has messages
     */
    final boolean letGoOfMessages(boolean safe) {
        if (endpoint == null || !endpoint.noticesFailures()) {
            return drain(safe ? 0 : CLOSE_NANOS);
        }
        if (drain(endpoint.hasOneConnection() ? 0 : CLOSE_NANOS)) {
            return true;
        }
        worker().giveUp(endpoint);
        return drain(CLOSE_NANOS);
    }

    /** Releases the endpoint. The caller must hold the worker's turn. */
    final void disconnect() {
        if (endpoint != null) {
            worker().disconnect(endpoint);
            endpoint = null;
        }
    }

    /** Returns the turn of a worker that this end no longer uses. */
    final void leaveForGood(UcxWorker mine) {
        mine.leave();
        if (!mine.isFit()) {
            workers.endUnused();
        }
    }

    // Requests

    /** Returns the request of a send that was begun; 0 if the send is complete. */
    final long begun(long returned) {
        if (UcxLibrary.isStatus(returned)) {
            note((int) returned, "a message cannot be sent");
            return returned == 0 ? 0 : FAILED;
        }
        return returned;
    }

    /** Begins to receive. Returns the request. */
    final long receive(long address, long bytes, long tag, long param) {
        long request = ucp_h.ucp_tag_recv_nbx(worker().handle(), address, bytes, tag, -1, param);
        if (UcxLibrary.isStatus(request)) {
            note((int) request, "a message cannot be awaited");
            return FAILED;
        }
        return request;
    }

    /** Returns the state of a send: its request while it is in flight, then 0, or {@link #FAILED}. */
    final long sent(long request) {
        int status = isRequest(request) ? ucp_h.ucp_request_check_status(request) : ucp_h.UCS_INPROGRESS();
        if (status == ucp_h.UCS_INPROGRESS()) {
            return request;
        }
        ucp_h.ucp_request_free(request);
        note(status, "a message was not sent");
        return status < 0 ? FAILED : 0;
    }

    /** Returns the length of a received message, {@link #FAILED} or {@link #UNDER_WAY}. Frees a complete request. */
    final long received(long request) {
        if (!isRequest(request)) {
            return UNDER_WAY;
        }
        int status = ucp_h.ucp_tag_recv_request_test(request, received);
        if (status == ucp_h.UCS_INPROGRESS()) {
            return UNDER_WAY;
        }
        ucp_h.ucp_request_free(request);
        note(status, "a message was not received");
        return status < 0 ? FAILED : UcxFormat.word(received + Long.BYTES);
    }

    static boolean isRequest(long request) {
        return request > 0;
    }

    /** Returns a request, for instance of a cancelled receive, while it is in flight; then 0, whatever its result. */
    final long left(long request) {
        long left = sent(request);
        return isRequest(left) ? left : 0;
    }

    /** Returns whether these requests are complete. Frees complete requests. */
    final boolean areOver(long[] requests) {
        boolean over = true;
        for (int i = 0; i < requests.length; i++) {
            requests[i] = left(requests[i]);
            over &= requests[i] == 0;
        }
        return over;
    }

    final void cancel(long request) {
        if (isRequest(request)) {
            ucp_h.ucp_request_cancel(worker().handle(), request);
        }
    }

    /** Drives the worker until UCX has no more requests. The caller must hold the worker's turn. */
    final boolean drain(long nanos) {
        long start = System.nanoTime();
        while (!isIdle()) {
            int ignored = worker().drive();
            if (System.nanoTime() - start > nanos || peerHasEnded()) {
                return false;
            }
        }
        return true;
    }

    /** Returns whether UCX has no request of this end. Frees complete requests. */
    abstract boolean isIdle();

    /**
     * Removes messages that no receive will take, so that UCX need not keep them. The caller must hold the worker's
     * turn.
     */
    final void discard(long tag) {
        long message = ucp_h.ucp_tag_probe_nb(worker().handle(), tag, -1, 1, received);
        while (message != 0) {
            long request = ucp_h.ucp_tag_msg_recv_nbx(worker().handle(), received, 0, message, plainReceive);
            if (!UcxLibrary.isStatus(request)) {
                ucp_h.ucp_request_free(request);
            }
            message = ucp_h.ucp_tag_probe_nb(worker().handle(), tag, -1, 1, received);
        }
    }

    // Its end

    /** Describes the progress of the connection, for messages. */
    abstract String howFar();

    final boolean peerHasEnded() {
        return endpoint != null && endpoint.peerHasEnded();
    }

    private void note(int status, String what) {
        if (status < 0 && failed == null) {
            failed = what + ": " + UcxLibrary.meaning(status);
            failedAt = System.nanoTime();
        }
    }

    /**
     * Returns whether UCX has failed, which ends the connection. The peer's own messages arrive over TCP, perhaps
     * later. If they do not arrive in time, this method throws.
     */
    final boolean hasFailed() {
        if (failed == null) {
            if (endpoint == null || !endpoint.hasFailed()) {
                return false;
            }
            failed = "UCX gave the endpoint up";
            failedAt = System.nanoTime();
        }
        if (System.nanoTime() - failedAt > LAST_WORDS_NANOS) {
            throw lost(failed, null);
        }
        return true;
    }

    /** Returns the exception for the end of the connection that established this connection. */
    final ConnectionException ended(ConnectionException why) {
        String howFar = howFar();
        return switch (why) {
            case LastWordsException lost -> closedByPeer(howFar, lost.lostPeer());
            case PeerClosedException _ -> closedByPeer(howFar);
            default -> lost("the TCP connection to it has ended without a shutdown message", why);
        };
    }

    final ConnectionException lost(String what, @Nullable ConnectionException cause) {
        if (peerHasEnded()) {
            worker.block();
        }
        return lost(what, howFar(),
                "; the peer's process ended, or the network between failed: look at what the peer said last", cause);
    }

    /** Returns the exception for messages that do not follow this protocol. */
    final ConnectionException notProtocol(String problem) {
        return fail(new ConnectionException(this + ": received a message that is no frame: " + problem
                + "; one end runs another version, or something changes data"));
    }

    static MemorySegment at(long address, long bytes) {
        return NativeRegion.ALL_MEMORY.asSlice(address, bytes);
    }
}
