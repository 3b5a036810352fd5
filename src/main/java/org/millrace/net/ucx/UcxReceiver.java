package org.millrace.net.ucx;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.connection.InFlight;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.shm.SharedMemory;

/**
 * The receiving end of a connection over UCX. Buffers wait for headers and short payloads. A long payload is received
 * directly into its destination.
 */
final class UcxReceiver extends UcxEnd implements FrameReceiver {

    /**
     * Number of unsuccessful polls between two checks of the connection that reports the peer's end; a power of two.
     */
    private static final int LOOK_INTERVAL = 64;

    /** Maximum number of frames with destinations for payloads that have not arrived. */
    private static final int FRAMES = UcxFormat.BUFFERS;
    /** Time limit for frames in flight after the sender's shutdown message, which arrives over TCP. */
    private static final long LATE_NANOS = 5_000_000_000L;
    /** Length of a payload that arrived with its header. */
    private static final long HERE = 0;
    /** Stored in place of a request: UCX reports that the payload has arrived, and the sender has not confirmed it. */
    private static final long UNCONFIRMED = -3;

    private final SenderWords words;
    private final long framesTag = newTag();
    private long answersTag;

    /** By frame: destination, length and parameters of a payload that is a separate message. */
    private final long[] destinations = new long[FRAMES];
    private final long[] lengths = new long[FRAMES];
    private final long[] params = new long[FRAMES];
    private final long[] requests = new long[FRAMES];

    /** Null until the sender's worker is known. */
    private @Nullable IncomingMessages messages;
    private boolean hasLetGo;
    private @Nullable CountMessages confirmed;
    private long answerRequest;

    private long shown;
    /** Accepted frames that are not complete. */
    private final InFlight window = new InFlight(FRAMES);
    /** Number of accepted frames that were passed to UCX. */
    private long posted;
    /** Number of received payloads that were separate messages. */
    private long whole;

    private final FrameHeader header = new FrameHeader();
    /** Whether the header was shown, and its payload has no destination yet. */
    private boolean headerShown;
    private int idlePolls;

    /**
     * Creates a receiver. It learns the sender's worker over an established connection, and takes ownership of that
     * connection.
     */
    public UcxReceiver(OpenResources network, String name, FrameReceiver found, Network finder, UcxWorkers workers) {
        super(network, name, found.peer(), workers);
        words = new SenderWords(this, found, finder);
        network.opened(this, this::close);
    }

    @Override
    public @Nullable FrameHeader poll() {
        checkOpen();
        if (headerShown) {
            return header;
        }
        if (takesRest()) {
            headerShown = words.next(header);
            return headerShown ? header : null;
        }
        if (!window.isFull() && tryEnter()) {
            try {
                headerShown = next();
            } finally {
                worker().leave();
            }
            if (headerShown) {
                return header;
            }
        }
        lookNowAndThen();
        return null;
    }

    /** Checks the peer after an unsuccessful call. Data that arrived before a failure is still delivered. */
    private void lookNowAndThen() {
        if (hasFailed() || (++idlePolls & LOOK_INTERVAL - 1) == 0 || messages == null) {
            lookAtPeer();
        }
    }

    @Override
    public int progress() {
        checkOpen();
        if (takesRest()) {
            return words.progress();
        }
        if (!tryEnter()) {
            return 0;
        }
        int work;
        try {
            work = advance();
        } finally {
            worker().leave();
        }
        if (work == 0) {
            lookNowAndThen();
        }
        return work;
    }

    @Override
    public long framesCompleted() {
        return window.done() + words.framesCompleted();
    }

    @Override
    public boolean storesWholeWords(long bytes) {
        // so short a payload follows its header over every transport, and this thread copies it
        return UcxFormat.isInline(bytes, UcxFormat.LEAST_BUFFER_BYTES);
    }

    @Override
    public void close() {
        close(this::sendShutdown);
    }

    /** Does the work that needs no waiting. The caller must hold the worker's turn. */
    private int advance() {
        int work = drive(worker());
        IncomingMessages in = messages;
        if (in == null) {
            return work + answer();
        }
        work += (int) confirmed.listen();
        return work + post(in) + complete();
    }

    /** Reads the next frame's header, if it has arrived. The caller must hold the worker's turn. */
    private boolean next() {
        int ignored = advance();
        boolean came = messages != null && messages.next(header);
        if (came) {
            shown++;
        }
        return came;
    }

    /** Answers the sender's hello once it has arrived. */
    private int answer() {
        MemorySegment address = words.address();
        if (address == null) {
            return 0;
        }
        FrameHeader hello = words.hello();
        connect(address, hello.word(2), hello.word(3), hello.word(4), hello.word(5));
        answersTag = hello.word(1) & UcxFormat.TAG_MASK;
        confirmed = CountMessages.receiver(this, framesTag | UcxFormat.TAG_CONFIRMED);
        messages = new IncomingMessages(this, framesTag | UcxFormat.TAG_HEADER, answersTag | UcxFormat.TAG_CREDIT,
                bufferBytes());
        byte[] mine = worker().address();
        MemorySegment answer = arena.allocate(UcxFormat.READY_BYTES + mine.length, Long.BYTES);
        long at = answer.address();
        UcxFormat.word(at, UcxFormat.READY);
        UcxFormat.word(at + 8, framesTag);
        UcxFormat.word(at + 16, SharedMemory.thisHost());
        UcxFormat.word(at + 24, flags());
        UcxFormat.word(at + 32, ProcessIdentity.CURRENT.pid());
        UcxFormat.word(at + 40, ProcessIdentity.CURRENT.startTicks());
        UcxFormat.word(at + 48, UcxFormat.BUFFERS);
        UcxFormat.word(at + 56, bufferBytes());
        MemorySegment.copy(MemorySegment.ofArray(mine), 0, answer, UcxFormat.READY_BYTES, mine.length);
        answerRequest = begun(
                ucp_h.ucp_tag_send_nbx(endpoint(), at, answer.byteSize(), answersTag | UcxFormat.TAG_READY, eagerSend));
        return 1;
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        checkAccept(headerShown);
        long bytes = header.payloadBytes();
        UcxRegion memory = bytes == 0 ? null : (UcxRegion) NativeRegion.check(region, network(), offset, bytes);
        long destination = memory == null ? 0 : memory.view().address() + offset;
        headerShown = false;
        if (takesRest()) {
            words.accept(bytes, destination);
            return;
        }
        int frame = window.begin();
        boolean inline = messages.isInline(bytes);
        messages.take(bytes, destination);
        lengths[frame] = inline ? HERE : bytes;
        destinations[frame] = destination;
        params[frame] = memory == null ? 0 : memory.receiveParam();
        if (tryEnter()) {
            try {
                int ignored = post(messages) + complete();
            } finally {
                worker().leave();
            }
        }
    }

    /** Posts receives for payloads, and free buffers. The caller must hold the worker's turn. */
    private int post(IncomingMessages in) {
        long before = posted;
        while (posted < window.begun()) {
            int frame = window.slot(posted);
            if (lengths[frame] != HERE) {
                requests[frame] =
                        receive(destinations[frame], lengths[frame], framesTag | UcxFormat.TAG_PAYLOAD, params[frame]);
            }
            posted++;
        }
        in.giveBack();
        return (int) (posted - before);
    }

    private int complete() {
        long before = window.done();
        while (window.done() < posted) {
            int frame = window.oldest();
            if (lengths[frame] != HERE && !isWhole(frame)) {
                break;
            }
            window.finishOldest();
        }
        return (int) (window.done() - before);
    }

    /**
     * Returns whether a payload that is a separate message is complete. UCX alone cannot tell: if a sender dies in the
     * middle, UCX 1.13 reports data that it could not read as received. Only a living sender confirms.
     */
    private boolean isWhole(int frame) {
        if (requests[frame] != UNCONFIRMED) {
            long bytes = received(requests[frame]);
            if (bytes == UNDER_WAY) {
                return false;
            }
            requests[frame] = bytes == FAILED ? FAILED : UNCONFIRMED;
            if (bytes == FAILED) {
                return false;
            }
            if (bytes != lengths[frame]) {
                throw notProtocol("a payload of " + bytes + " bytes came where " + lengths[frame] + " were announced");
            }
        }
        if (whole == confirmed.count()) {
            return false;
        }
        whole++;
        requests[frame] = 0;
        return true;
    }

    // The peer's end

    /** Returns whether the next frame arrives over the connection that established this connection. */
    private boolean takesRest() {
        return words.hasRest() && window.done() == words.last();
    }

    /** Reads the peer's messages on the connection that established this connection. */
    private void lookAtPeer() {
        try {
            words.listen();
        } catch (ConnectionException e) {
            if (!words.sentShutdown()) {
                throw ended(e);
            }
        }
        if (words.sentShutdown()) {
            if (shown > words.last()) {
                throw lost("the peer has left with frames under way", null);
            }
            if (window.done() == words.last() && shown == words.last() && !words.hasRest()) {
                throw closedByPeer(howFar(), words.lostPeer());
            }
            if (words.nanosSinceShutdown() > LATE_NANOS && !takesRest()) {
                throw lost("the peer sent its shutdown message after " + words.last() + " frames, and they do not come",
                        null);
            }
        }
    }

    @Override
    String howFar() {
        return "after " + framesCompleted() + " whole frames and " + (shown - window.done()) + " begun";
    }

    // This side's end

    /**
     * Releases all UCX requests. Then sends the shutdown message over the connection that established this connection.
     */
    private void sendShutdown() {
        letGo();
        words.sendShutdown(blamed());
    }

    @Override
    boolean isIdle() {
        answerRequest = left(answerRequest);
        return areOver(requests) & (messages == null || messages.isIdle() & confirmed.isIdle()) & answerRequest == 0;
    }

    @Override
    protected void release() {
        letGo();
        words.close();
        if (isIdle() || !hasWorker()) {
            arena.close();
        }
    }

    /** Makes UCX release all requests, once. */
    private void letGo() {
        if (hasWorker() && !hasLetGo) {
            hasLetGo = true;
            worker().enter();
            try {
                worker().use(-1);
                if (worker().runs()) { // otherwise UCX's requests stay, because it must not be called
                    end();
                }
            } finally {
                leaveForGood(worker());
            }
        }
    }

    private void end() {
        flush(); // the sender must learn of the last payloads
        for (long request : requests) {
            cancel(request);
        }
        if (messages != null) {
            messages.cancel();
            confirmed.cancel();
        }
        boolean letGo = drain(FLUSH_NANOS);
        // UCX releases a sender's memory when its messages have been answered, even if only by a refusal.
        int ignored = worker().drive();
        discard(framesTag | UcxFormat.TAG_HEADER);
        discard(framesTag | UcxFormat.TAG_PAYLOAD);
        discard(framesTag | UcxFormat.TAG_CONFIRMED);
        flush();
        letGo = letGo || letGoOfMessages(false);
        boolean ended = peerHasEnded();
        disconnect();
        if (!letGo && !ended) {
            worker().stop(this + " was closed while UCX received into memory that is freed next, and the peer did not "
                    + "let go of it in time: all that this thread has over UCX is ended");
        }
    }
}
