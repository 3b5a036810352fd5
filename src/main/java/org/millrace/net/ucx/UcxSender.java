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
import org.millrace.net.connection.LastWords;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * The sending end of a connection over UCX. {@link #offer} notes a frame, with a copy of its header and of a short
 * payload; {@link #progress} gives what was noted to UCX. A frame is complete when UCX has read its payload: for a long
 * one that is when the receiver has it. What UCX holds lives on for a while after {@link #close}, as the peer may still
 * be receiving.
 */
final class UcxSender extends UcxEnd implements FrameSender, UcxWorker.Lingering {

    /** How long a connection that was closed stays for its peer. */
    private static final long LINGER_NANOS = 10_000_000_000L;

    private final FrameSender found;
    private final Network finder;
    private final SenderMeeting meeting;

    /** By frame: its header, its payload, and the parameters of a message with that alone. */
    private final long headers = arena.allocate((long) UcxFormat.FRAMES * UcxFormat.HEADER_BYTES, 64).address();
    private final long[] payloads = new long[UcxFormat.FRAMES];
    private final long[] lengths = new long[UcxFormat.FRAMES];
    private final long[] params = new long[UcxFormat.FRAMES];
    private final long[] requests = new long[UcxFormat.FRAMES];

    /** Null until the peer has answered. */
    private @Nullable OutgoingMessages messages;
    private @Nullable CountMessages confirmations;

    /** Frames that were offered and are not complete. */
    private final InFlight window = new InFlight(UcxFormat.FRAMES);
    private long posted;
    /** Payloads that were messages of their own. */
    private long received;

    /** The end of the connection over which the peer was found, if it is told later than all is known. */
    private @Nullable ConnectionException foundEnd;
    private long foundEndAt;
    private boolean sentShutdown;
    /** Messages may be under way until the peer closes the connection by which it was found. */
    private boolean awaitsPeer;
    private long overAt;

    /** A sender whose hello goes over a connection that was made, to be closed with this. */
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

    /** Whether a payload that is a message of its own is not announced first. Known once the peer has answered. */
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

    /** Looks whether the peer has gone. */
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
            // It may have received all before it went: that comes another way.
            foundEnd = e;
            foundEndAt = System.nanoTime();
            return 0;
        }
    }

    /** Does what can be done without waiting. With the turn. */
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

    /** Sends what was offered: headers with short payloads, as many in a message as there are, and long payloads. */
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

    /** Counts frames whose payloads UCX has read, and confirms those that it says the receiver has. */
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

    // Closing

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
        // Messages are under way that cannot be taken back: the peer is told that it is over, and when it has let go of
        // them it closes the connection by which it was found.
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
     * Sends what needs no waiting, and tells the peer how much that was. A peer that has not answered the hello yet
     * gets the frames over the connection by which it was found.
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
                LastWords.write(blamed(), header::word);
                tell(header, null, 0);
            }
            if (rest > 0) {
                tellFrames();
            }
            sentShutdown = true;
            awaitsPeer = !window.isEmpty();
        } catch (ConnectionException gone) {
            // The peer is gone before us; the owner did not want to know of it any more.
        }
    }

    /**
     * Whether nothing can be read from this side's memory any more: UCX has sent all, or the peer has closed the
     * connection by which it was found, which it does when it awaits no message any more.
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

    /** Sends a frame over the connection by which the peer was found, if that needs no waiting. */
    private void tell(FrameHeader header, @Nullable MemoryRegion memory, long address) {
        long before = found.framesCompleted();
        if (found.offer(header, memory, address)) {
            while (found.progress() > 0 && found.framesCompleted() == before) {
                // as much as it takes
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

    /** The peer may still be receiving: what it needs stays, but nothing that is the owner's. */
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
            return; // what UCX has stays: nothing may be asked of it
        }
        if (messages != null) {
            messages.cancel();
        }
        meeting.cancel();
        boolean safe = awaitPeer();
        found.close();
        boolean idle = letGoOfMessages(safe);
        boolean ended = peerHasEnded();
        disconnect();
        if (idle) {
            discard(meeting.answersTag() | UcxFormat.TAG_CREDIT);
            meeting.close();
            arena.close();
        } else if (!safe && !ended && !areOver(requests)) {
            // Headers and counts that UCX still has lie in this side's own memory, which stays. Payloads are the
            // owner's.
            worker().stop(this + " was closed while UCX sent from memory that is freed next, and the peer did not let "
                    + "go of it in time: all that this thread has over UCX is ended");
        }
    }
}
