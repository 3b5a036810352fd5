package org.millrace.net.ucx;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.security.SecureRandom;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.ConnectionException;
import org.millrace.net.LostPeerException;
import org.millrace.net.PeerClosedException;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.shm.SharedMemory;
import org.millrace.net.ucx.UcxWorker.UcxEndpoint;

/**
 * Base class of the sender and the receiver over UCX. It has the worker and the endpoint, and releases the requests.
 * The ends find each other over a connection of another network, usually TCP: the setup connection. The setup
 * connection stays open. Its close shows that the peer has closed this connection, and its loss shows that the peer is
 * lost.
 */
abstract class UcxEnd extends ConnectionState {

    /**
     * Time to wait, after a failure of UCX, for the peer's own messages over the setup connection, in nanoseconds. The
     * peer's messages explain the reason better than UCX's error.
     */
    private static final long LAST_WORDS_NANOS = 1_000_000_000L;
    /** Time limit for closing a connection if the peer must participate, in nanoseconds. */
    static final long CLOSE_NANOS = 2_000_000_000L;
    /** Time limit for sent data to leave this process, in nanoseconds. */
    static final long FLUSH_NANOS = 200_000_000L;

    /** Position of the lowest bit of the PID namespace's number, which is a part of {@link #flags}. */
    private static final int NAMESPACE_SHIFT = 8;
    /**
     * Values in place of a request or a length: {@code FAILED} after a failure, {@code UNDER_WAY} while a receive is in
     * flight. A valid request is an address, greater than 0.
     */
    static final long FAILED = -1;
    static final long UNDER_WAY = -2;

    private static final SecureRandom RANDOM = new SecureRandom();

    /** Memory that UCX accesses. The memory is freed when UCX has no more requests of this end. */
    final Arena arena = Arena.ofShared();
    /** Address of the parameters for a send from memory of the arena. */
    final long plainSend = UcxRegion.param(arena, 0, 0);
    /** Address of the parameters for an eager send from memory of the arena: the receiver is not asked first. */
    final long eagerSend = UcxRegion.param(arena, 0, ucp_h.UCP_OP_ATTR_FLAG_FAST_CMPL());
    final long plainReceive = UcxRegion.param(arena, 0, ucp_h.UCP_OP_ATTR_FLAG_NO_IMM_CMPL());
    /** Address of memory for two words that UCX writes about a received message: its tag and its length. */
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

    /** Returns the worker. Valid only after a call of {@link #tryEnter}. */
    final UcxWorker worker() {
        return worker;
    }

    /**
     * Locks the worker, without waiting. Returns false if another thread holds the lock. The first thread that calls
     * this method determines the worker of the connection.
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
     * Drives the worker, unless another connection has driven it since the last call of this method. The worker is
     * therefore driven only once in a pass over many connections. Returns the amount of work done.
     */
    final int drive(UcxWorker mine) {
        int work = 0;
        if (mine.passes() == passesSeen) {
            work = mine.drive();
        }
        passesSeen = mine.passes();
        return work;
    }

    final boolean hasEndpoint() {
        return endpoint != null;
    }

    /** Returns whether the endpoint detects the loss of the peer. Valid only after {@link #connect}. */
    final boolean noticesFailures() {
        return endpoint.noticesFailures();
    }

    /**
     * Returns the handle of the endpoint, for calls of UCX. Throws if the endpoint was given up. The caller must hold
     * the worker's lock.
     */
    final long endpoint() {
        long handle = endpoint.handle();
        if (handle == 0) {
            throw lost("another connection to the same process was closed, and the peer did not release it in time",
                    null);
        }
        return handle;
    }

    /**
     * Returns the length in bytes of a receiver's buffers, which depends on the transport between the two processes.
     * Valid only after {@link #connect}.
     */
    final int bufferBytes() {
        return !noticesFailures() ? UcxFormat.SHARED_BUFFER_BYTES
                : workers.context().reachesRemoteMemory() ? UcxFormat.CARD_BUFFER_BYTES : UcxFormat.TCP_BUFFER_BYTES;
    }

    final long flags() {
        return ProcessIdentity.CURRENT.namespace() << NAMESPACE_SHIFT
                | (workers.context().sharesMemory() ? UcxFormat.SHARES_MEMORY : 0);
    }

    /**
     * Connects to the peer's worker. The caller must hold the worker's lock.
     *
     * @param address    address of the peer's worker
     * @param host       number that identifies the peer's host
     * @param peersFlags result of {@link #flags} at the peer
     * @param pid        process ID of the peer
     * @param startTicks start time of the peer's process
     */
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
     * Waits until the sent data has left this process, but only for a limited time. The caller must hold the worker's
     * lock.
     */
    final void flush() {
        if (endpoint != null && endpoint.handle() != 0 && !peerHasEnded()) {
            worker().flush(endpoint.handle(), FLUSH_NANOS);
        }
    }

    /**
     * Makes UCX release all messages of this end. First waits a limited time for the peer to complete the messages. If
     * messages remain and the endpoint detects failures, gives up the endpoint with all its connections. Does not wait
     * if the endpoint detects failures and has no other connection. Does not wait either if the endpoint detects no
     * failures and {@code safe} is true. The caller must hold the worker's lock.
     *
     * @param safe whether the peer no longer reads or writes shared memory
     * @return false if UCX still has messages
     */
    final boolean releaseMessages(boolean safe) {
        if (endpoint == null || !endpoint.noticesFailures()) {
            return drain(safe ? 0 : CLOSE_NANOS);
        }
        if (drain(endpoint.hasOneConnection() ? 0 : CLOSE_NANOS)) {
            return true;
        }
        worker().giveUp(endpoint);
        return drain(CLOSE_NANOS);
    }

    /** Removes this connection from the endpoint. The caller must hold the worker's lock. */
    final void disconnect() {
        if (endpoint != null) {
            worker().disconnect(endpoint);
            endpoint = null;
        }
    }

    /** Unlocks the worker after this end has used it for the last time. Destroys workers that can no longer be used. */
    final void leaveForGood(UcxWorker mine) {
        mine.leave();
        if (!mine.isFit()) {
            workers.endUnused();
        }
    }

    /**
     * Checks the result of a UCX call that sends.
     *
     * @return the request of the send; 0 if the send is already complete; {@link #FAILED} if UCX refused the send
     */
    final long begun(long returned) {
        if (UcxLibrary.isStatus(returned)) {
            note((int) returned, "a message cannot be sent");
            return returned == 0 ? 0 : FAILED;
        }
        return returned;
    }

    /** Begins a receive. Returns its request, or {@link #FAILED}. */
    final long receive(long address, long bytes, long tag, long param) {
        long request = ucp_h.ucp_tag_recv_nbx(worker().handle(), address, bytes, tag, -1, param);
        if (UcxLibrary.isStatus(request)) {
            note((int) request, "a message cannot be awaited");
            return FAILED;
        }
        return request;
    }

    /**
     * Checks a send. Returns its request while the send is in flight. Otherwise frees the request, and returns 0 or
     * {@link #FAILED}.
     */
    final long sent(long request) {
        int status = isRequest(request) ? ucp_h.ucp_request_check_status(request) : ucp_h.UCS_INPROGRESS();
        if (status == ucp_h.UCS_INPROGRESS()) {
            return request;
        }
        ucp_h.ucp_request_free(request);
        note(status, "a message was not sent");
        return status < 0 ? FAILED : 0;
    }

    /**
     * Checks a receive. Returns {@link #UNDER_WAY} while the receive is in flight. Otherwise frees the request, and
     * returns the length of the message or {@link #FAILED}.
     */
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

    /**
     * Returns a request while it is in flight. Afterwards frees the request, ignores its result, and returns 0. Used
     * for requests whose result is not needed, such as canceled receives.
     */
    final long left(long request) {
        long left = sent(request);
        return isRequest(left) ? left : 0;
    }

    /** Returns whether all requests of an array are complete. Frees complete requests, and sets their elements to 0. */
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

    /**
     * Drives the worker until UCX has no more requests of this end. Returns false after a time limit, or if the peer's
     * process has ended. The caller must hold the worker's lock.
     */
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
     * Removes from UCX the messages that have the given tag and that no receive has taken. UCX then frees these
     * messages. The caller must hold the worker's lock.
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

    /** Returns a description of the connection's progress, for messages. */
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
     * Returns whether UCX has failed. A failure ends the connection. The peer's own messages about the reason arrive
     * over the setup connection, possibly after the failure of UCX. This method throws the failure only if a time limit
     * passes without these messages.
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

    /** Returns the exception of this connection for the close or the loss of the setup connection. */
    final ConnectionException ended(ConnectionException why) {
        String howFar = howFar();
        return switch (why) {
            case LostPeerException lost -> closedByPeer(howFar, lost.lostPeer());
            case PeerClosedException _ -> closedByPeer(howFar);
            default -> lost("the TCP connection to it has ended without a shutdown message", why);
        };
    }

    final ConnectionException lost(String what, @Nullable ConnectionException cause) {
        if (peerHasEnded()) {
            worker.block();
        }
        return lost(what, howFar(),
                "; the peer's process ended, or the network between failed: see the peer's last log lines", cause);
    }

    final ConnectionException notProtocol(String problem) {
        return fail(new ConnectionException(this + ": received a message that is not a frame: " + problem
                + "; one end runs another version, or something changes data"));
    }

    static MemorySegment at(long address, long bytes) {
        return NativeRegion.ALL_MEMORY.asSlice(address, bytes);
    }
}
