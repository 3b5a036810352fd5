package org.millrace.net.ucx;

import org.jspecify.annotations.Nullable;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.PeerClosedException;
import org.millrace.net.connection.InFlight;
import org.millrace.net.connection.LostPeerName;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * The sending end of a connection over UCX. {@link #offer} stores a frame, with a copy of its header. {@link #progress}
 * passes the stored frames to UCX, and copies short payloads into messages. A frame is complete when UCX has read its
 * payload. A long payload has then also arrived at the receiver. Resources of UCX stay for some time after
 * {@link #close}, because the peer may still be receiving.
 */
final class UcxSender extends UcxEnd implements FrameSender, UcxWorker.Lingering {

    /** Maximum time that the resources of a closed connection stay allocated for the peer, in nanoseconds. */
    private static final long LINGER_NANOS = 10_000_000_000L;

    private final FrameSender found;
    private final Network finder;
    private final SenderMeeting meeting;

    /**
     * For each frame: address of the header copy, and address and length of the payload. If the payload is a separate
     * message, also the parameters and the request of its send.
     */
    private final long headers = arena.allocate((long) UcxFormat.FRAMES * UcxFormat.HEADER_BYTES, 64).address();
    private final long[] payloads = new long[UcxFormat.FRAMES];
    private final long[] lengths = new long[UcxFormat.FRAMES];
    private final long[] params = new long[UcxFormat.FRAMES];
    private final long[] requests = new long[UcxFormat.FRAMES];

    /** Messages with headers; null until the handshake is complete. */
    private @Nullable OutgoingMessages messages;
    private @Nullable CountMessages confirmations;

    /** Offered frames that are not complete. */
    private final InFlight window = new InFlight(UcxFormat.FRAMES);
    private long posted;
    /** Number of separate payload messages that have arrived at the receiver, according to UCX. */
    private long received;

    /**
     * Exception that reports that the peer closed the setup connection while posted frames were incomplete; null before
     * such a close. The exception is thrown when UCX has completed the posted frames, but at the latest
     * {@link #FLUSH_NANOS} after this end has detected the close.
     */
    private @Nullable ConnectionException foundEnd;
    private long foundEndAt;
    private boolean sentShutdown;
    /**
     * Whether messages are possibly in flight after the close. If so, this end waits until the setup connection is
     * closed or lost.
     */
    private boolean awaitsPeer;
    private long overAt;

    /**
     * Creates a sender. Later calls of {@link #progress} send the hello over the setup connection.
     *
     * @param found sender of the setup connection; the new sender closes it
     */
    public UcxSender(OpenResources network, String name, FrameSender found, Network finder, UcxWorkers workers) {
        super(network, name, found.peer(), workers);
        this.found = found;
        this.finder = finder;
        meeting = new SenderMeeting(this, found, finder);
        network.opened(this, this::close);
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        checkOpen();
        long bytes = UcxFormat.checkedLength(header);
        UcxRegion memory = bytes == 0 ? null : (UcxRegion) NativeRegion.check(region, network(), offset, bytes);
        if (window.isFull()) {
            return false;
        }
        int frame = window.begin();
        UcxFormat.encode(header, header(frame));
        lengths[frame] = bytes;
        if (memory != null) {
            payloads[frame] = memory.view().address() + offset;
            params[frame] = goesAtOnce(bytes) ? memory.eagerSendParam() : memory.sendParam();
        }
        return true;
    }

    /**
     * Returns whether a payload that is a separate message is sent eagerly, without asking the receiver first. Always
     * false before the handshake is complete.
     */
    private boolean goesAtOnce(long bytes) {
        return messages != null && !noticesFailures() && bytes <= UcxContext.EAGER_BYTES;
    }

    private long header(int frame) {
        return headers + (long) frame * UcxFormat.HEADER_BYTES;
    }

    @Override
    public long framesCompleted() {
        return window.done();
    }

    @Override
    public int progress() {
        checkOpen();
        int work = lookAtPeer();
        if (hasFailed() || !tryEnter()) {
            return work;
        }
        try {
            return work + advance();
        } finally {
            worker().leave();
        }
    }

    /** Checks the setup connection. Throws if the peer has closed it. Returns the amount of work done. */
    private int lookAtPeer() {
        ConnectionException why = foundEnd;
        if (why != null) {
            if (window.done() == posted || System.nanoTime() - foundEndAt > FLUSH_NANOS) {
                throw ended(why);
            }
            return 0;
        }
        try {
            return found.progress();
        } catch (ConnectionException e) {
            if (!(e instanceof PeerClosedException) || window.done() == posted) {
                throw ended(e);
            }
            // The peer may have received all frames before it closed the connection. The completion of these frames is
            // reported by UCX, and not by the setup connection.
            foundEnd = e;
            foundEndAt = System.nanoTime();
            return 0;
        }
    }

    /** Makes as much progress as is possible without blocking. The caller must hold the worker's lock. */
    private int advance() {
        int work = drive(worker());
        OutgoingMessages out = messages;
        if (out == null) {
            return work + meet();
        }
        work += (int) out.readCredits();
        work += complete(out);
        work += post(out);
        return work + complete(out);
    }

    private int meet() {
        int work = meeting.advance();
        if (meeting.isOver()) {
            confirmations = CountMessages.sender(this, meeting.framesTag() | UcxFormat.TAG_CONFIRMED);
            messages = new OutgoingMessages(this, meeting.framesTag() | UcxFormat.TAG_HEADER,
                    meeting.answersTag() | UcxFormat.TAG_CREDIT, meeting.bufferBytes());
        }
        return work;
    }

    /**
     * Sends the offered frames. A message contains the headers and short payloads of all available frames that fit.
     * Each long payload is a separate message. Returns the number of sent frames.
     */
    private int post(OutgoingMessages out) {
        long before = posted;
        while (posted < window.begun() && foundEnd == null && out.hasRoom()) {
            long first = posted;
            while (posted < window.begun() && add(out, window.slot(posted))) {
                posted++;
            }
            out.send();
            for (long each = first; each < posted; each++) {
                int frame = window.slot(each);
                requests[frame] = out.isInline(lengths[frame]) ? 0
                        : begun(ucp_h.ucp_tag_send_nbx(endpoint(), payloads[frame], lengths[frame],
                                meeting.framesTag() | UcxFormat.TAG_PAYLOAD, params[frame]));
            }
        }
        return (int) (posted - before);
    }

    private boolean add(OutgoingMessages out, int frame) {
        return out.add(header(frame), payloads[frame], lengths[frame]);
    }

    /**
     * Completes the frames after UCX has read their payloads. Sends the receiver a confirmation if UCX has reported the
     * arrival of more separate payload messages. Returns the number of completed frames.
     */
    private int complete(OutgoingMessages out) {
        long before = window.done();
        while (window.done() < posted) {
            int frame = window.oldest();
            requests[frame] = sent(requests[frame]);
            if (requests[frame] != 0) {
                break;
            }
            window.finishOldest();
            received += out.isInline(lengths[frame]) ? 0 : 1;
        }
        if (received != confirmations.count()) {
            confirmations.tell(received);
        }
        return (int) (window.done() - before);
    }

    @Override
    boolean isIdle() {
        return areOver(requests) & (messages == null || messages.isIdle() & confirmations.isIdle()) & meeting.isIdle();
    }

    @Override
    String howFar() {
        return "after " + window.done() + " whole frames were sent and " + (window.begun() - window.done()) + " begun";
    }

    @Override
    public void close() {
        close(this::sendShutdown);
    }

    @Override
    public void abort() {
        close(this::sendAbort);
    }

    private void sendAbort() {
        if (!hasEndpoint() || window.done() == posted) {
            found.abort();
            return;
        }
        // Sends in flight cannot be canceled. The peer ends these sends after the abort message, and then closes the
        // setup connection.
        try {
            FrameHeader header = new FrameHeader();
            header.word(0, UcxFormat.ABORT);
            tell(header, null, 0);
            awaitsPeer = true;
        } catch (ConnectionException gone) {
            found.abort();
        }
    }

    /**
     * Sends the remaining frames within a time limit, then a shutdown message with the number of sent frames. If the
     * peer has not answered the hello, the frames are sent over the setup connection instead.
     */
    private void sendShutdown() {
        try {
            if (messages != null) {
                sendRest();
            }
            long rest = messages == null ? window.begun() : 0;
            FrameHeader header = new FrameHeader();
            header.word(0, UcxFormat.SHUTDOWN);
            header.word(1, window.done());
            header.word(2, blamed() == null ? 0 : 1);
            header.word(3, rest);
            tell(header, null, 0);
            if (blamed() != null) {
                LostPeerName.write(blamed(), header::word);
                tell(header, null, 0);
            }
            if (rest > 0) {
                tellFrames();
            }
            sentShutdown = true;
            awaitsPeer = !window.isEmpty();
        } catch (ConnectionException gone) {
            // The peer has closed before this end. The owner closes this end anyway, so it needs no exception.
        }
    }

    /**
     * Waits until UCX and the peer no longer read this side's memory. The wait ends when UCX has sent all messages. It
     * also ends when the peer has closed the setup connection, because the peer then expects no message. Returns false
     * if messages remain after a time limit. The limit is 0 if {@link #awaitsPeer} is false.
     */
    private boolean awaitPeer() {
        long start = System.nanoTime();
        while (!isIdle()) {
            try {
                int ignored = found.progress() + worker().drive();
            } catch (ConnectionException ended) {
                return true;
            }
            if (!awaitsPeer || System.nanoTime() - start > CLOSE_NANOS) {
                return false;
            }
        }
        return true;
    }

    private void tellFrames() {
        FrameHeader header = new FrameHeader();
        try (MemoryRegion all = finder.allMemory()) {
            for (; !window.isEmpty(); window.finishOldest()) {
                int frame = window.oldest();
                UcxFormat.decode(header(frame), header);
                tell(header, lengths[frame] == 0 ? null : all, payloads[frame]);
            }
        }
    }

    /**
     * Sends a frame over the setup connection without blocking. The frame is sent in part, or not at all, if the
     * network of the setup connection accepts no more data.
     */
    private void tell(FrameHeader header, @Nullable MemoryRegion memory, long address) {
        long before = found.framesCompleted();
        if (found.offer(header, memory, address)) {
            while (found.progress() > 0 && found.framesCompleted() == before) {
                // The loop ends when the frame is sent, or when the network accepts no more data.
            }
        }
    }

    private void sendRest() {
        worker().enter();
        try {
            long start = System.nanoTime();
            while ((!window.isEmpty() || received != confirmations.count())
                    && System.nanoTime() - start < FLUSH_NANOS) {
                int ignored = found.progress();
                ignored = worker().drive();
                ignored = advance();
            }
            if (posted > 0) {
                flush();
            }
        } finally {
            worker().leave();
        }
    }

    /**
     * Releases the owner's resources. If the peer may still be receiving, this end's UCX resources stay until the peer
     * has closed the setup connection.
     */
    @Override
    protected void release() {
        if (!hasWorker()) {
            found.close();
            arena.close();
            return;
        }
        worker().enter();
        try {
            if (sentShutdown && window.isEmpty() && messages != null && worker().runs()) {
                overAt = System.nanoTime() + LINGER_NANOS;
                worker().keep(this);
            } else {
                end();
            }
        } finally {
            leaveForGood(worker());
        }
    }

    @Override
    public boolean isOver() {
        try {
            return found.progress() == 0 && System.nanoTime() - overAt > 0;
        } catch (ConnectionException gone) {
            return true;
        }
    }

    @Override
    public void end() {
        worker().use(-1);
        if (!worker().runs()) {
            found.close();
            // A stopped worker must not be called, so UCX keeps the requests.
            return;
        }
        if (messages != null) {
            messages.cancel();
        }
        meeting.cancel();
        boolean safe = awaitPeer();
        found.close();
        boolean idle = releaseMessages(safe);
        boolean ended = peerHasEnded();
        disconnect();
        if (idle) {
            discard(meeting.answersTag() | UcxFormat.TAG_CREDIT);
            meeting.close();
            arena.close();
        } else if (!safe && !ended && !areOver(requests)) {
            // UCX still sends payloads from the owner's memory. UCX's other messages are in memory that stays
            // allocated.
            worker().stop(this + " was closed while UCX sent from memory that is freed next, and the peer did not "
                    + "release it in time: all connections of this thread over UCX are ended");
        }
    }
}
