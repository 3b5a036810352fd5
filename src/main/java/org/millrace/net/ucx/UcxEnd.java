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

/** What the two ends of a connection have in common: a worker, an endpoint, requests, and how all that ends. */
abstract class UcxEnd extends ConnectionState {

    /** How long a failure of UCX's waits for the peer's own words, which tell more: they take another way. */
    private static final long LAST_WORDS_NANOS = 1_000_000_000L;
    /** How long the end of a connection may take whose peer does its part. */
    static final long CLOSE_NANOS = 2_000_000_000L;
    /** How long what was sent may take to leave this process. */
    static final long FLUSH_NANOS = 200_000_000L;

    /** In the flags: above them is where the number of the process counts. */
    private static final int NAMESPACE_SHIFT = 8;
    /** In place of a request, or of a length; requests are addresses, and greater than 0. */
    static final long FAILED = -1;
    static final long UNDER_WAY = -2;

    private static final SecureRandom RANDOM = new SecureRandom();

    /** Memory that UCX is given: freed when it has no request there any more. */
    final Arena arena = Arena.ofShared();
    /** Parameters of a message in that memory. */
    final long plainSend = UcxRegion.param(arena, 0, 0);
    /** The same of one that goes at once, without asking the receiver first, whatever its length. */
    final long eagerSend = UcxRegion.param(arena, 0, ucp_h.UCP_OP_ATTR_FLAG_FAST_CMPL());
    final long plainReceive = UcxRegion.param(arena, 0, ucp_h.UCP_OP_ATTR_FLAG_NO_IMM_CMPL());
    /** The tag and the length of a message that came. */
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

    /** The worker; only after {@link #enter} or {@link #tryEnter}. */
    final UcxWorker worker() {
        return worker;
    }

    /** The worker of the thread that polls this connection first; false if another thread has the turn. */
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
     * Drives the worker, unless another connection has done so since this one came by: so that a pass over many
     * connections drives it once.
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

    /** Whether it notices that the peer is gone; after {@link #connect}. */
    final boolean noticesFailures() {
        return endpoint.noticesFailures();
    }

    /** To send to; throws if it was given up. With the turn. */
    final long endpoint() {
        long handle = endpoint.handle();
        if (handle == 0) {
            throw lost("another connection to the same process was closed, and the peer did not let go of it in time",
                    null);
        }
        return handle;
    }

    /** How long a receiver's buffers are, by how bytes go between the two. After {@link #connect}. */
    final int bufferBytes() {
        return !noticesFailures() ? UcxFormat.SHARED_BUFFER_BYTES
                : workers.context().reachesRemoteMemory() ? UcxFormat.CARD_BUFFER_BYTES : UcxFormat.TCP_BUFFER_BYTES;
    }

    final long flags() {
        return ProcessIdentity.CURRENT.namespace() << NAMESPACE_SHIFT
                | (workers.context().sharesMemory() ? UcxFormat.SHARES_MEMORY : 0);
    }

    /** Connects to the peer's worker. With the turn. */
    final void connect(MemorySegment address, long host, long peersFlags, long pid, long startTicks) {
        boolean shared = host == SharedMemory.thisHost() && (flags() & peersFlags & UcxFormat.SHARES_MEMORY) != 0;
        try {
            endpoint = worker().connect(address,
                    shared ? new ProcessIdentity(pid, startTicks, peersFlags >>> NAMESPACE_SHIFT) : null);
        } catch (ConnectionException e) {
            throw fail(new ConnectionException(this + ": " + e.getMessage(), e));
        }
    }

    /** Waits for a while until what was given to UCX has left this process. With the turn. */
    final void flush() {
        if (endpoint != null && endpoint.handle() != 0 && !peerHasEnded()) {
            worker().flush(endpoint.handle(), FLUSH_NANOS);
        }
    }

    /**
     * Has UCX let go of all messages, which the peer helps with if it can; if it does not, all connections between the
     * two workers are lost, where UCX can end those alone. With the turn.
     *
     * @param safe whether shared memory is not read or written by the peer any more
     * @return false if UCX still has some
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

    /** Uses the endpoint no more. With the turn. */
    final void disconnect() {
        if (endpoint != null) {
            worker().disconnect(endpoint);
            endpoint = null;
        }
    }

    /** Gives the turn back, of a worker that this end uses no more. */
    final void leaveForGood(UcxWorker mine) {
        mine.leave();
        if (!mine.isFit()) {
            workers.endUnused();
        }
    }

    // Requests

    /** A send that was begun: its request, or 0 if it is complete. */
    final long begun(long returned) {
        if (UcxLibrary.isStatus(returned)) {
            note((int) returned, "a message cannot be sent");
            return returned == 0 ? 0 : FAILED;
        }
        return returned;
    }

    /** Begins to receive; the request. */
    final long receive(long address, long bytes, long tag, long param) {
        long request = ucp_h.ucp_tag_recv_nbx(worker().handle(), address, bytes, tag, -1, param);
        if (UcxLibrary.isStatus(request)) {
            note((int) request, "a message cannot be awaited");
            return FAILED;
        }
        return request;
    }

    /** What is left of a send: its request while it is under way, then 0, or {@link #FAILED}. */
    final long sent(long request) {
        int status = isRequest(request) ? ucp_h.ucp_request_check_status(request) : ucp_h.UCS_INPROGRESS();
        if (status == ucp_h.UCS_INPROGRESS()) {
            return request;
        }
        ucp_h.ucp_request_free(request);
        note(status, "a message was not sent");
        return status < 0 ? FAILED : 0;
    }

    /** Length of a message that came; {@link #FAILED} or {@link #UNDER_WAY}. When it is over its request is freed. */
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

    /** What is left of a receive that was cancelled, or of another request, whatever becomes of it. */
    final long left(long request) {
        long left = sent(request);
        return isRequest(left) ? left : 0;
    }

    /** Whether none of these is under way any more; those that are over are freed. */
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

    /** Waits until UCX has no request any more, driving the worker. With the turn. */
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

    /** Whether UCX has no request of this end; those that are complete are freed. */
    abstract boolean isIdle();

    /** Takes messages away that nobody will receive, so that UCX need not keep them. With the turn. */
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

    /** How far the connection has come, for messages. */
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
     * Whether UCX has failed, and the connection is over. The peer's own words come another way, and perhaps later;
     * when they do not come this throws.
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

    /** What to throw when the connection over which the two ends found each other has ended. */
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

    /** What to throw for messages that are not of this protocol. */
    final ConnectionException notProtocol(String problem) {
        return fail(new ConnectionException(this + ": received a message that is no frame: " + problem
                + "; one end runs another version, or something changes data"));
    }

    static MemorySegment at(long address, long bytes) {
        return NativeRegion.ALL_MEMORY.asSlice(address, bytes);
    }
}
