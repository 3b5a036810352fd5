package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.gin.InboundFrames.InboundFrame;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;

/**
 * Receives the frames of one peer. Checks every frame against the windows and contexts of this rank before the first
 * byte of the frame is written.
 */
final class FrameDispatcher {

    /**
     * Mask for the context number that a frame states. The masked number only selects a sequence of copies, so its
     * validity is not checked.
     */
    private static final int CONTEXT_MASK = (1 << 16) - 1;

    private final LocalRank rank;
    private final long chunkBytes;
    private final int peer;
    private final FrameReceiver receiver;
    private final GetPath gets;
    private final GetAnswers answers;
    private final InboundFrames frames;
    private StagingRing.@Nullable Reader ring;
    private boolean helloReceived;
    /**
     * Ordinal of the newest accepted frame that writes to a window, from 1; 0 if none. A get that arrives later is
     * answered only after that frame is settled, because the answer must contain the frame's bytes.
     */
    private long written;
    /**
     * Time at which the next frame began to wait for its window or context, as {@link System#nanoTime}; 0 if the frame
     * does not wait.
     */
    private long waitingSince;

    FrameDispatcher(LocalRank rank, int peer, FrameReceiver receiver, GetPath gets, GetAnswers answers) {
        this.rank = rank;
        this.chunkBytes = rank.options().chunkBytes();
        this.peer = peer;
        this.receiver = receiver;
        this.gets = gets;
        this.answers = answers;
        frames = new InboundFrames(rank.options().depth());
    }

    /** Allows the peer to stage payloads in a ring from now on. */
    void stage(StagingRing.Reader reader) {
        ring = reader;
    }

    int progress() {
        int work = 0;
        try {
            work = receiver.progress();
            work += accept();
        } finally {
            // Also runs after a PeerClosedException, because the pass that throws it may have received the final
            // payloads.
            work += frames.arrive(receiver.framesCompleted()) + frames.settle();
        }
        return work;
    }

    int settle() {
        return frames.settle();
    }

    private int accept() {
        int work = 0;
        while (!frames.isFull()) {
            FrameHeader header = receiver.poll();
            if (header == null || !admit(header)) {
                break;
            }
            frames.add();
            work++;
        }
        return work;
    }

    /**
     * Checks a frame, begins its effects, and accepts its payload. Returns false if the frame must wait; the caller
     * then calls this method again later.
     */
    private boolean admit(FrameHeader header) {
        InboundFrame frame = frames.next();
        if (!helloReceived) {
            handleHello(header);
        } else {
            requireStaging(header);
            boolean ready = switch (GinHeader.kind(header)) {
                case GinHeader.PUT -> put(header, frame);
                case GinHeader.VA_SIGNAL -> vaSignal(header, frame);
                case GinHeader.GET -> get(header);
                case GinHeader.GET_DATA -> getData(header, frame);
                default -> throw refused(header, "unknown kind of frame");
            };
            if (!ready) {
                return false;
            }
            waitingSince = 0;
        }
        boolean payload = header.payloadBytes() > 0;
        receiver.accept(payload ? frame.transfer.region() : null, payload ? frame.transfer.regionOffset() : 0);
        return true;
    }

    private void requireStaging(FrameHeader header) {
        if (GinHeader.isStaged(header)) {
            boolean brings = GinHeader.kind(header) == GinHeader.PUT || GinHeader.kind(header) == GinHeader.GET_DATA;
            if (ring == null || !brings || header.payloadBytes() != 0 || GinHeader.inlineBytes(header) != 0) {
                throw refused(header, ring == null ? "no memory is shared to stage bytes in"
                        : "only bytes of a put or get without a payload are staged");
            }
            String problem = ring.problem(GinHeader.stagedOffset(header), GinHeader.stagedBytes(header), chunkBytes);
            if (problem != null) {
                throw refused(header, problem);
            }
        }
    }

    private static long bytes(FrameHeader header) {
        return GinHeader.isStaged(header) ? GinHeader.stagedBytes(header) : header.payloadBytes();
    }

    /**
     * Begins to write the bytes of a frame to a window. The bytes are the frame's payload, or are in the staging ring.
     * Returns false if the window's memory cannot begin another transfer now.
     */
    private boolean place(FrameHeader header, InboundFrame frame, Window target, long offset, long bytes) {
        StagingRing.Reader reader = ring;
        if (reader == null || !GinHeader.isStaged(header)) {
            return target.openWrite(frame.transfer, offset, bytes);
        }
        if (!reader.begin(frame.transfer, target, offset, bytes)) {
            return false;
        }
        frame.staged(reader, reader.position());
        return true;
    }

    private void handleHello(FrameHeader header) {
        if (GinHeader.kind(header) != GinHeader.HELLO || header.payloadBytes() != 0
                || header.word(1) != GinHeader.PROTOCOL) {
            throw refused(header, "a rank of this version sends a hello first; all ranks must run the same version");
        }
        if (header.word(2) != peer || header.word(3) != rank.ranks()) {
            throw refused(header, "it states that it is rank " + header.word(2) + " of " + header.word(3) + ", not "
                    + "of " + rank.ranks());
        }
        if (header.word(4) != chunkBytes) {
            throw refused(header, "its chunks have " + header.word(4) + " bytes and ours " + chunkBytes
                    + ": give all ranks the same");
        }
        helloReceived = true;
    }

    private boolean put(FrameHeader header, InboundFrame frame) {
        @Nullable
        GinContext context = null;
        if (GinHeader.isSignalled(header)) {
            context = context(header);
            if (context == null) {
                return false;
            }
        }
        int inline = GinHeader.inlineBytes(header);
        long bytes = inline > 0 ? inline : bytes(header);
        if (inline > Long.BYTES || inline > 0 && header.payloadBytes() > 0 || bytes > chunkBytes) {
            throw refused(header, "a frame carries a value of 1 to 8 bytes, or a payload of at most " + chunkBytes);
        }
        if (bytes > 0) {
            Window window = window(header, bytes);
            if (window != null) {
                frame.transfer.sequence(
                        PathOrder.sequence((int) GinHeader.context(header) & CONTEXT_MASK, peer, rank.ranks()),
                        window.isOrdered(bytes));
            }
            if (window == null || !place(header, frame, window, GinHeader.offset(header), bytes)) {
                return false;
            }
            written = frames.added() + 1;
            if (inline > 0) {
                frame.transfer.storeInline(GinHeader.last(header));
            }
        }
        if (context != null) {
            frame.signal(context, (int) GinHeader.signal(header), GinHeader.value(header));
        }
        return true;
    }

    private boolean vaSignal(FrameHeader header, InboundFrame frame) {
        if (header.payloadBytes() != 0 || (GinHeader.offset(header) & Long.BYTES - 1) != 0) {
            throw refused(header, "a signal in a window lies at a multiple of 8, and has no payload");
        }
        Window window = window(header, Long.BYTES);
        if (window != null) {
            written = frames.added() + 1;
            frame.vaSignal(window, GinHeader.offset(header), GinHeader.value(header));
        }
        return window != null;
    }

    private boolean get(FrameHeader header) {
        long bytes = GinHeader.last(header);
        if (header.payloadBytes() != 0 || bytes < 1) {
            throw refused(header, "it asks for " + bytes + " bytes");
        }
        if (answers.isFull()) {
            throw refused(header, GetPath.MAX_GETS + " gets are not answered yet, and that is the maximum");
        }
        Window window = window(header, bytes);
        if (window == null || frames.settled() < written) {
            return false;
        }
        answers.add(window, GinHeader.offset(header), bytes);
        return true;
    }

    /**
     * Begins to write the answer to this rank's oldest get. The destination comes from this rank's record of the get,
     * because the peer's frame does not contain a destination. Returns false if the window's memory cannot begin
     * another transfer now.
     */
    private boolean getData(FrameHeader header, InboundFrame frame) {
        GetPath.Get get = gets.oldest();
        long bytes = bytes(header);
        if (get == null || GinHeader.last(header) != gets.oldestNumber() || bytes < 1 || bytes > get.missing
                || bytes > chunkBytes) {
            throw refused(header,
                    get == null ? "no get is unanswered"
                            : "get " + gets.oldestNumber() + " lacks " + get.missing + " bytes, and this is of get "
                                    + GinHeader.last(header));
        }
        if (!place(header, frame, get.target, get.offset, bytes)) {
            return false;
        }
        get.advance(bytes);
        if (get.missing == 0) {
            gets.oldestAnswered(frame);
        }
        return true;
    }

    /** Returns the context of the signal that a frame increases; null while this rank has not added the context. */
    private @Nullable GinContext context(FrameHeader header) {
        GinContext[] contexts = rank.contexts().all();
        long number = GinHeader.context(header);
        GinContext context = number < contexts.length ? contexts[(int) number] : null;
        if (context == null) {
            await(header, "there is no such context");
            return null;
        }
        long signal = GinHeader.signal(header);
        if (signal < 0 || signal >= context.signals().count()) {
            throw refused(header, "the context has " + context.signals().count() + " signals");
        }
        return context;
    }

    /**
     * Returns the window that a frame belongs to; null while this rank has not registered the window. Checks that the
     * window contains the frame's range of bytes.
     */
    private @Nullable Window window(FrameHeader header, long bytes) {
        long handle = GinHeader.window(header);
        // isYetToCome is called before find. In the opposite order, a window that another thread registers between the
        // two calls would be refused.
        boolean mayCome = rank.windows().isYetToCome(handle);
        Window window = rank.windows().find(handle);
        if (window == null) {
            if (handle < 1 || !mayCome) {
                throw refused(header, rank.windows().describe(handle));
            }
            await(header, rank.windows().describe(handle));
            return null;
        }
        if (!window.holds(GinHeader.offset(header), bytes)) {
            throw refused(header, bytes + " bytes at " + GinHeader.offset(header) + " are not within " + window);
        }
        return window;
    }

    /**
     * Measures how long a frame waits for its window or context, which the peer may have created before this rank did.
     * Refuses the frame if the wait exceeds the communicator's patience.
     *
     * @param what reason for the wait, for the message
     */
    private void await(FrameHeader header, String what) {
        long now = System.nanoTime();
        if (waitingSince == 0) {
            waitingSince = now;
        } else if (now - waitingSince > rank.options().patience().toNanos()) {
            throw refused(header, what + ", and was not within " + rank.options().patience().toMillis() + " ms");
        }
    }

    private GinException refused(FrameHeader header, String why) {
        return new GinException("rank " + rank.rank() + " refuses a frame of rank " + peer + " over " + receiver + ": "
                + GinHeader.describe(header) + ": " + why);
    }

    /**
     * Returns the number of the peer's frames that are settled: all their bytes are written, and their signals are
     * increased.
     */
    long settled() {
        return frames.settled();
    }

    boolean isSettled() {
        return frames.isEmpty();
    }

    void close() {
        receiver.close();
    }

    void abandon() {
        frames.abandon();
    }
}
