package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.gin.InboundFrames.InboundFrame;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;

/** What one peer sends: every frame is checked against the windows and contexts here before a byte is written. */
final class FrameDispatcher {

    /** What numbers of contexts are cut to where they only tell sequences apart. */
    private static final int MOST_CONTEXTS = (1 << 16) - 1;

    private final LocalRank rank;
    private final long chunkBytes;
    private final int peer;
    private final FrameReceiver receiver;
    private final GetPath gets;
    private final GetAnswers answers;
    private final InboundFrames frames;
    private StagingRing.@Nullable Reader ring;
    private boolean greeted;
    /** Number of the last frame whose bytes a get behind it is to find in the window. */
    private long written;
    /** Since when the oldest frame waits for its window or context; 0 if it does not. */
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

    /** Payloads may be staged in a ring from now on. */
    void stage(StagingRing.Reader reader) {
        ring = reader;
    }

    int progress() {
        int work = 0;
        try {
            work = receiver.progress();
            work += accept();
        } finally {
            // a shutdown message may be thrown in the very pass that accepted the last frames
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

    /** Gives a frame its place; false if it has to wait. */
    private boolean admit(FrameHeader header) {
        InboundFrame frame = frames.next();
        if (!greeted) {
            greet(header);
        } else {
            requireStaging(header);
            boolean ready = switch (GinHeader.kind(header)) {
                case GinHeader.PUT -> put(header, frame);
                case GinHeader.VA_SIGNAL -> vaSignal(header, frame);
                case GinHeader.GET -> get(header);
                case GinHeader.GET_DATA -> getData(header, frame);
                default -> throw refused(header, "there is no such frame");
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
                        : "only bytes of a put or get that bring no payload are staged");
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

    /** Gives a frame's bytes their place in a window; false if there is no room now. */
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

    private void greet(FrameHeader header) {
        if (GinHeader.kind(header) != GinHeader.HELLO || header.payloadBytes() != 0
                || header.word(1) != GinHeader.PROTOCOL) {
            throw refused(header, "a rank of this version says hello first; all ranks must run the same version");
        }
        if (header.word(2) != peer || header.word(3) != rank.ranks()) {
            throw refused(header,
                    "it says it is rank " + header.word(2) + " of " + header.word(3) + ", and not of " + rank.ranks());
        }
        if (header.word(4) != chunkBytes) {
            throw refused(header, "its chunks have " + header.word(4) + " bytes and ours " + chunkBytes
                    + ": give all ranks the same");
        }
        greeted = true;
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
                        PathOrder.sequence((int) GinHeader.context(header) & MOST_CONTEXTS, peer, rank.ranks()),
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
            throw refused(header, "a signal in a window lies at a multiple of 8, and brings no payload");
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
            throw refused(header, GetPath.MOST + " gets are not answered yet, and no rank asks for more at once");
        }
        Window window = window(header, bytes);
        if (window == null || frames.settled() < written) {
            return false;
        }
        answers.add(window, GinHeader.offset(header), bytes);
        return true;
    }

    /** Where the answer goes is what this rank remembers, not what the peer says. */
    private boolean getData(FrameHeader header, InboundFrame frame) {
        GetPath.Get get = gets.oldest();
        long bytes = bytes(header);
        if (get == null || GinHeader.last(header) != gets.oldestNumber() || bytes < 1 || bytes > get.missing
                || bytes > chunkBytes) {
            throw refused(header,
                    get == null ? "nothing was asked for"
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

    /** The context that a frame signals; null while it has not been made yet. */
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

    /** The window that a frame names, which holds the bytes; null while it has not been registered yet. */
    private @Nullable Window window(FrameHeader header, long bytes) {
        long handle = GinHeader.window(header);
        boolean mayCome = rank.windows().isYetToCome(handle); // before it is looked for, as it may come in between
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

    /** A peer may be a moment ahead; a name of what never comes is refused. */
    private void await(FrameHeader header, String what) {
        long now = System.nanoTime();
        if (waitingSince == 0) {
            waitingSince = now;
        } else if (now - waitingSince > rank.options().patience().toNanos()) {
            throw refused(header, what + ", and was not within " + rank.options().patience().toMillis() + " ms");
        }
    }

    private GinException refused(FrameHeader header, String why) {
        return new GinException("rank " + rank.rank() + " refuses what rank " + peer + " sends over " + receiver + ": "
                + GinHeader.describe(header) + ": " + why);
    }

    /** How many of the peer's frames have been carried out, all they asked for included. */
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
