package org.millrace.gin;

import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;

/** What one peer sends: every frame is checked against the windows and contexts here before a byte is written. */
final class Arrivals {

    private final GinCommunicator communicator;
    private final int peer;
    private final FrameReceiver receiver;
    private final Gets gets;
    private final Answers answers;
    private final Landings landings;
    private StagingIn staging;
    private boolean greeted;
    /** Number of the last landing that a get behind it is to find in the window. */
    private long written;
    /** Since when the oldest frame waits for its window or context; 0 if it does not. */
    private long waitingSince;

    Arrivals(GinCommunicator communicator, int peer, FrameReceiver receiver, Gets gets, Answers answers) {
        this.communicator = communicator;
        this.peer = peer;
        this.receiver = receiver;
        this.gets = gets;
        this.answers = answers;
        landings = new Landings(communicator.options().depth());
    }

    /** Payloads may be staged in a ring from now on. */
    void stage(StagingRing ring) {
        staging = new StagingIn(ring);
    }

    int progress() {
        int work = 0;
        try {
            work = receiver.progress();
            work += accept();
        } finally {
            work += landings.arrive(receiver.framesCompleted()) + landings.settle(); // a goodbye may be thrown in the
                                                                                     // very pass that accepted the last
                                                                                     // frames
        }
        return work;
    }

    /** Goes on with what has arrived. */
    int settle() {
        return landings.settle();
    }

    private int accept() {
        int work = 0;
        while (!landings.isFull()) {
            FrameHeader header = receiver.poll();
            if (header == null || !admit(header)) {
                break;
            }
            landings.add();
            work++;
        }
        return work;
    }

    /** Gives a frame its place; false if it has to wait. */
    private boolean admit(FrameHeader header) {
        Landing landing = landings.next();
        if (!greeted) {
            greet(header);
        } else {
            requireStaging(header);
            boolean ready = switch (GinHeader.kind(header)) {
                case GinHeader.PUT -> put(header, landing);
                case GinHeader.VA_SIGNAL -> vaSignal(header, landing);
                case GinHeader.GET -> get(header);
                case GinHeader.GET_DATA -> getData(header, landing);
                default -> throw refused(header, "there is no such frame");
            };
            if (!ready) {
                return false;
            }
            waitingSince = 0;
        }
        boolean payload = header.payloadBytes() > 0;
        receiver.accept(payload ? landing.transfer.region() : null, payload ? landing.transfer.regionOffset() : 0);
        return true;
    }

    private void requireStaging(FrameHeader header) {
        if (GinHeader.isStaged(header)) {
            boolean brings = GinHeader.kind(header) == GinHeader.PUT || GinHeader.kind(header) == GinHeader.GET_DATA;
            if (staging == null || !brings || header.payloadBytes() != 0 || GinHeader.inlineBytes(header) != 0) {
                throw refused(header, staging == null ? "no memory is shared to stage bytes in"
                        : "only bytes of a put or get that bring no payload are staged");
            }
            String problem = staging.problem(header, communicator.options().chunkBytes());
            if (problem != null) {
                throw refused(header, problem);
            }
        }
    }

    private static long bytes(FrameHeader header) {
        return GinHeader.isStaged(header) ? GinHeader.stagedBytes(header) : header.payloadBytes();
    }

    /** Gives a frame's bytes their place in a window; false if there is no room now. */
    private boolean land(FrameHeader header, Landing landing, Window target, long offset, long bytes) {
        if (GinHeader.isStaged(header)) {
            return staging.begin(header, landing, target, offset);
        }
        landing.open = target.openWrite(landing.transfer, offset, bytes);
        return landing.open;
    }

    private void greet(FrameHeader header) {
        long chunk = communicator.options().chunkBytes();
        if (GinHeader.kind(header) != GinHeader.HELLO || header.payloadBytes() != 0
                || header.word(1) != GinHeader.PROTOCOL) {
            throw refused(header, "a rank of this version says hello first; all ranks must run the same version");
        }
        if (header.word(2) != peer || header.word(3) != communicator.ranks()) {
            throw refused(header, "it says it is rank " + header.word(2) + " of " + header.word(3) + ", and not of "
                    + communicator.ranks());
        }
        if (header.word(4) != chunk) {
            throw refused(header,
                    "its chunks have " + header.word(4) + " bytes and ours " + chunk + ": give all ranks the same");
        }
        greeted = true;
    }

    private boolean put(FrameHeader header, Landing landing) {
        GinContext context = null;
        if (GinHeader.isSignalled(header)) {
            context = context(header);
            if (context == null) {
                return false;
            }
        }
        int inline = GinHeader.inlineBytes(header);
        long bytes = inline > 0 ? inline : bytes(header);
        if (inline > Long.BYTES || inline > 0 && header.payloadBytes() > 0
                || bytes > communicator.options().chunkBytes()) {
            throw refused(header, "a frame carries a value of 1 to 8 bytes, or a payload of at most "
                    + communicator.options().chunkBytes());
        }
        if (bytes > 0) {
            Window window = window(header, bytes);
            if (window == null || !land(header, landing, window, GinHeader.offset(header), bytes)) {
                return false;
            }
            written = landings.added() + 1;
            if (inline > 0) {
                SelfLane.storeInline(landing.transfer, GinHeader.last(header));
            }
        }
        if (context != null) {
            landing.signal(context, (int) GinHeader.signal(header), GinHeader.value(header));
        }
        return true;
    }

    private boolean vaSignal(FrameHeader header, Landing landing) {
        if (header.payloadBytes() != 0 || (GinHeader.offset(header) & Long.BYTES - 1) != 0) {
            throw refused(header, "a signal in a window lies at a multiple of 8, and brings no payload");
        }
        Window window = window(header, Long.BYTES);
        if (window != null) {
            written = landings.added() + 1;
            landing.vaSignal(window, GinHeader.offset(header), GinHeader.value(header));
        }
        return window != null;
    }

    private boolean get(FrameHeader header) {
        long bytes = GinHeader.last(header);
        if (header.payloadBytes() != 0 || bytes < 1) {
            throw refused(header, "it asks for " + bytes + " bytes");
        }
        if (answers.isFull()) {
            throw refused(header, Gets.MOST + " gets are not answered yet, and no rank asks for more at once");
        }
        Window window = window(header, bytes);
        if (window == null || landings.settled() < written) {
            return false;
        }
        answers.add(window, GinHeader.offset(header), bytes);
        return true;
    }

    /** Where the answer goes is what this rank remembers, not what the peer says. */
    private boolean getData(FrameHeader header, Landing landing) {
        Gets.Get get = gets.oldest();
        long bytes = bytes(header);
        if (get == null || GinHeader.last(header) != gets.oldestNumber() || bytes < 1 || bytes > get.missing
                || bytes > communicator.options().chunkBytes()) {
            throw refused(header,
                    get == null ? "nothing was asked for"
                            : "get " + gets.oldestNumber() + " lacks " + get.missing + " bytes, and this is of get "
                                    + GinHeader.last(header));
        }
        if (!land(header, landing, get.target, get.offset, bytes)) {
            return false;
        }
        get.offset += bytes;
        get.missing -= bytes;
        if (get.missing == 0) {
            landing.completes(get.queue, get.index);
            gets.oldestAnswered();
        }
        return true;
    }

    /** The context that a frame signals; null while it has not been made yet. */
    private GinContext context(FrameHeader header) {
        GinContext[] contexts = communicator.contexts();
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
    private Window window(FrameHeader header, long bytes) {
        long handle = GinHeader.window(header);
        Window window = communicator.windows().find(handle);
        if (window == null) {
            if (handle < 1 || !communicator.windows().isYetToCome(handle)) {
                throw refused(header, communicator.windows().describe(handle));
            }
            await(header, communicator.windows().describe(handle));
            return null;
        }
        if (!window.holds(GinHeader.offset(header), bytes)) {
            throw refused(header, bytes + " bytes at " + GinHeader.offset(header) + " are not within " + window);
        }
        return window;
    }

    /** A peer may be a moment ahead; whoever names what never comes is refused. */
    private void await(FrameHeader header, String what) {
        long now = System.nanoTime();
        if (waitingSince == 0) {
            waitingSince = now;
        } else if (now - waitingSince > communicator.options().patience().toNanos()) {
            throw refused(header,
                    what + ", and was not within " + communicator.options().patience().toMillis() + " ms");
        }
    }

    private GinException refused(FrameHeader header, String why) {
        return new GinException("rank " + communicator.rank() + " refuses what rank " + peer + " sends over " + receiver
                + ": " + GinHeader.describe(header) + ": " + why);
    }

    /** How many of the peer's frames have been carried out, all they asked for included. */
    long settled() {
        return landings.settled();
    }

    boolean isSettled() {
        return landings.isEmpty();
    }

    void close() {
        receiver.close();
    }

    void abandon() {
        landings.abandon();
    }
}
