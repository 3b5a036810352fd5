package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.gin.SignalMemory.PeerSignals;
import org.millrace.net.FrameHeader;

/**
 * The order between the paths of one queue. A program may count on two things: a signal becomes visible behind all
 * earlier puts, and a get or a put finds in place what earlier puts were to write there. Each path keeps its own order,
 * but frames take effect when the peer carries them out, copies as soon as they are begun, and signals that are counted
 * up in a peer's memory at once. So there are three rules where paths meet:
 *
 * <pre>
 *   first        then         rule
 *   copy         frame        The copy has an entry among the frames. {@link OutboundFrames} sends nothing behind it
 *                             before the copy is over.
 *   frame        copy         The copy begins when the peer has said that it has carried the frames out, unless they
 *                             write elsewhere than the copy. One of few bytes in a strict window
 *                             waits for all bytes that frames write. A peer whose word this rank cannot read is copied to only as long as no frame of the queue writes
 *                             there: {@link #canCopy}, {@link #isCopyInTurn}.
 *   copy, frame  signal       It is counted up without a frame if the peer has carried out all that was sent, and
 *                             travels in a frame otherwise: {@link #signal}.
 * </pre>
 */
final class PathOrder {

    private final GinContext context;
    private final int sequence;
    /** What the peer says of this rank's frames; null if this rank does not share memory with it. */
    private final @Nullable PeerSignals near;
    /** Frames of the queue that write bytes at the peer, and those that add to signals in a window there. */
    private final Entries writes = new Entries(true);
    private final Entries adds = new Entries(true);
    /** Copies of the queue to the peer. */
    private final Entries copies = new Entries(false);

    /** Some of the queue's entries among the frames, up to the last, and where they write. */
    private final class Entries {
        private final boolean areFrames;
        /** From 1 on; 0 if it was carried out, or there is none. */
        private long last;
        /** How many frames had gone to the network when that had; 0 as long as it has not. */
        private long sentByThen;
        /** Where those that were not seen to be over write: in one window, from here to there; in any if it is 0. */
        private long window;
        private long start;
        private long end;

        Entries(boolean areFrames) {
            this.areFrames = areFrames;
        }

        void add(long entry, long in, long offset, long bytes) {
            if (last == 0) {
                window = in;
                start = offset;
                end = offset + bytes;
            } else {
                window = window == in ? in : 0;
                start = Math.min(start, offset);
                end = Math.max(end, offset + bytes);
            }
            last = entry;
            sentByThen = 0;
        }

        boolean areOver(OutboundFrames frames) {
            if (last == 0) {
                return true;
            }
            if (sentByThen == 0 && frames.isOffered(last)) {
                sentByThen = areFrames ? frames.count() : 0;
                last = areFrames ? last : 0; // a copy's entry is passed when it was made
            }
            if (sentByThen > 0 && near != null && near.isSettled(sentByThen)) {
                last = 0;
            }
            return last == 0;
        }

        boolean areElsewhere(long in, long offset, long bytes) {
            return window != 0 && (window != in || offset >= end || offset + bytes <= start);
        }
    }

    PathOrder(GinContext context, int peer) {
        this.context = context;
        sequence = sequence(context.number(), peer, context.peers());
        near = context.reached(peer);
    }

    /** Which copies of one rank keep an order among them: those of one context to one peer. */
    static int sequence(int context, int peer, int ranks) {
        return context * ranks + peer;
    }

    /** That of the queue's copies. */
    int sequence() {
        return sequence;
    }

    /** A frame of the queue writes bytes to a window at the peer. */
    void wrote(long entry, long window, long offset, long bytes) {
        writes.add(entry, window, offset, bytes);
    }

    /** A frame of the queue adds to 8 bytes of a window at the peer. */
    void added(long entry, long window, long offset) {
        adds.add(entry, window, offset, Long.BYTES);
    }

    /** A copy of the queue writes to a window at the peer. */
    void copied(long entry, long window, long offset, long bytes) {
        copies.add(entry, window, offset, bytes);
    }

    /** Whether a copy of the queue can keep its order, now or later; it travels in frames otherwise. */
    boolean canCopy() {
        return writes.last == 0 && adds.last == 0 || near != null;
    }

    /**
     * Whether a copy may touch bytes of a window at the peer: what frames were to write there before it is there.
     *
     * @param ordered whether it is behind all that frames were to write, wherever that is
     */
    boolean isCopyInTurn(OutboundFrames frames, long window, long offset, long bytes, boolean ordered) {
        return (writes.areOver(frames) || !ordered && writes.areElsewhere(window, offset, bytes))
                && (adds.areOver(frames) || adds.areElsewhere(window, offset, bytes));
    }

    /** Whether no copy of the queue that is under way writes bytes of a window at the peer. */
    boolean isUntouched(OutboundFrames frames, long window, long offset, long bytes) {
        return copies.areOver(frames) || copies.areElsewhere(window, offset, bytes);
    }

    /**
     * Counts a frame's signal up in the peer's memory; false if the frame has to bring it.
     *
     * @param sent how many frames have gone to the peer
     */
    boolean signal(FrameHeader header, long sent) {
        if (near == null || !near.add(sent, (int) GinHeader.signal(header), GinHeader.value(header))) {
            return false;
        }
        context.countReached();
        return true;
    }
}
