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
 * The receiving end of a connection over UCX. It has buffers for messages with headers and short payloads. UCX receives
 * a long payload directly into its destination.
 */
final class UcxReceiver extends UcxEnd implements FrameReceiver {

    /** Number of unsuccessful polls between two checks of the setup connection; a power of two. */
    private static final int LOOK_INTERVAL = 64;

    /** Maximum number of accepted frames that are incomplete. */
    private static final int FRAMES = UcxFormat.BUFFERS;
    /**
     * Time limit for frames that arrive over UCX after the sender's shutdown message on the setup connection, in
     * nanoseconds.
     */
    private static final long LATE_NANOS = 5_000_000_000L;
    /** Value in {@link #lengths} for a payload that arrived in the same message as its header. */
    private static final long HERE = 0;
    /**
     * Value in {@code requests} for a payload that UCX reports as received, until the sender has confirmed the payload.
     */
    private static final long UNCONFIRMED = -3;

    private final SenderWords words;
    private final long framesTag = newTag();
    private long answersTag;

    /**
     * For each frame with a payload in a separate message: destination, length, and parameters of the receive. The
     * other elements of {@link #lengths} are {@link #HERE}.
     */
    private final long[] destinations = new long[FRAMES];
    private final long[] lengths = new long[FRAMES];
    private final long[] params = new long[FRAMES];
    private final long[] requests = new long[FRAMES];

    /** Buffers for messages; null until the sender's hello has arrived. */
    private @Nullable IncomingMessages messages;
    private boolean hasReleased;
    private @Nullable CountMessages confirmed;
    private long answerRequest;

    private long shown;
    private final InFlight window = new InFlight(FRAMES);
    /**
     * Number of accepted frames that {@link #post} has processed: the receive was begun, or no receive was needed.
     */
    private long posted;
    /** Number of payloads that have arrived completely in separate messages. */
    private long whole;

    private final FrameHeader header = new FrameHeader();
    /** Whether {@link #poll} has returned {@link #header}, and the payload of this header has no destination yet. */
    private boolean headerShown;
    private int idlePolls;

    /**
     * Creates a receiver, which reads the sender's hello from the setup connection in later calls.
     *
     * @param found receiver of the setup connection; the new receiver closes it
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

    /**
     * Called after an unsuccessful call. Checks the setup connection after some of these calls. Before the sender's
     * hello has arrived and after a failure of UCX, checks it after each of these calls. Data that arrived before a
     * failure is delivered first.
     */
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
        // A payload that fits into the smallest buffer is in the message with its header, over every transport. This
        // thread copies such a payload in whole words.
        return UcxFormat.isInline(bytes, UcxFormat.LEAST_BUFFER_BYTES);
    }

    @Override
    public void close() {
        close(this::sendShutdown);
    }

    /** Makes as much progress as is possible without blocking. The caller must hold the worker's lock. */
    private int advance() {
        int work = drive(worker());
        IncomingMessages in = messages;
        if (in == null) {
            return work + answer();
        }
        work += (int) confirmed.listen();
        return work + post(in) + complete();
    }

    /**
     * Reads the next frame's header. Returns false if the header has not arrived. The caller must hold the worker's
     * lock.
     */
    private boolean next() {
        int ignored = advance();
        boolean came = messages != null && messages.next(header);
        if (came) {
            shown++;
        }
        return came;
    }

    /** Answers the sender's hello, if the hello has arrived. Returns the amount of work done. */
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

    /**
     * Begins the receives of accepted frames, and posts free buffers again. The caller must hold the worker's lock.
     */
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
     * Returns whether a payload that is a separate message has arrived completely. The result of UCX is not sufficient.
     * If a sender dies during the transfer, UCX 1.13 reports the payload as received, although UCX could not read all
     * data. Therefore the sender also confirms each such payload.
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

    /** Returns whether the next frame arrives over the setup connection. */
    private boolean takesRest() {
        return words.hasRest() && window.done() == words.last();
    }

    /** Reads the peer's messages on the setup connection. Throws if the connection has ended. */
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
                throw lost("the peer closed with frames in flight", null);
            }
            if (window.done() == words.last() && shown == words.last() && !words.hasRest()) {
                throw closedByPeer(howFar(), words.lostPeer());
            }
            if (words.nanosSinceShutdown() > LATE_NANOS && !takesRest()) {
                throw lost("the peer sent its shutdown message after " + words.last() + " frames, and not all of "
                        + "them arrived", null);
            }
        }
    }

    @Override
    String howFar() {
        return "after " + framesCompleted() + " whole frames and " + (shown - window.done()) + " begun";
    }

    /** Releases all UCX requests, then sends the shutdown message over the setup connection. */
    private void sendShutdown() {
        releaseRequests();
        words.sendShutdown(blamed());
    }

    @Override
    boolean isIdle() {
        answerRequest = left(answerRequest);
        return areOver(requests) & (messages == null || messages.isIdle() & confirmed.isIdle()) & answerRequest == 0;
    }

    @Override
    protected void release() {
        releaseRequests();
        words.close();
        if (isIdle() || !hasWorker()) {
            arena.close();
        }
    }

    /** Makes UCX release all requests of this end. Does nothing in later calls. */
    private void releaseRequests() {
        if (hasWorker() && !hasReleased) {
            hasReleased = true;
            worker().enter();
            try {
                worker().use(-1);
                // A stopped worker must not be called, so UCX keeps the requests.
                if (worker().runs()) {
                    end();
                }
            } finally {
                leaveForGood(worker());
            }
        }
    }

    private void end() {
        // This flush shows the sender that the final payloads were received.
        flush();
        for (long request : requests) {
            cancel(request);
        }
        if (messages != null) {
            messages.cancel();
            confirmed.cancel();
        }
        boolean released = drain(FLUSH_NANOS);
        // The sender's UCX releases the sender's memory when this side has answered the sender's messages. A discarded
        // message also counts as answered.
        int ignored = worker().drive();
        discard(framesTag | UcxFormat.TAG_HEADER);
        discard(framesTag | UcxFormat.TAG_PAYLOAD);
        discard(framesTag | UcxFormat.TAG_CONFIRMED);
        flush();
        released = released || releaseMessages(false);
        boolean ended = peerHasEnded();
        disconnect();
        if (!released && !ended) {
            worker().stop(this + " was closed while UCX received into memory that is freed next, and the peer did "
                    + "not release it in time: all connections of this thread over UCX are ended");
        }
    }
}
