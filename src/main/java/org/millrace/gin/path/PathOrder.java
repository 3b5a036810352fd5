package org.millrace.gin.path;

import org.jspecify.annotations.Nullable;
import org.millrace.gin.GinContext;
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
 *                             only add to signals elsewhere than where the copy writes. A peer whose
 *                             word this rank cannot read is copied to only as long as no frame of the queue writes
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
    private final Frames writes = new Frames();
    private final Frames adds = new Frames();
    /** Where those that were not seen to be over add: in one window, from here to there; all windows if it is 0. */
    private long addWindow;
    private long addStart;
    private long addEnd;

    /** Some of the queue's frames, up to the last. */
    private final class Frames {
        /** Entry among the frames, from 1 on; 0 if it was carried out, or there is none. */
        private long last;
        /** How many frames had gone to the network when that had; 0 as long as it has not. */
        private long sentByThen;

        void add(long entry) {
            last = entry;
            sentByThen = 0;
        }

        boolean areOver(OutboundFrames frames) {
            if (last == 0) {
                return true;
            }
            if (sentByThen == 0 && frames.isOffered(last)) {
                sentByThen = frames.count();
            }
            if (sentByThen > 0 && near != null && near.isSettled(sentByThen)) {
                last = 0;
            }
            return last == 0;
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

    /** Frames of the queue, up to this entry, write at the peer. */
    void wrote(long entry) {
        writes.add(entry);
    }

    /** A frame of the queue adds to 8 bytes of a window at the peer. */
    void added(long entry, long window, long offset) {
        boolean first = adds.last == 0;
        addStart = first ? offset : Math.min(addStart, offset);
        addEnd = (first ? offset : Math.max(addEnd - Long.BYTES, offset)) + Long.BYTES;
        addWindow = first || addWindow == window ? window : 0;
        adds.add(entry);
    }

    /** Whether a copy of the queue can keep its order, now or later; it travels in frames otherwise. */
    boolean canCopy() {
        return writes.last == 0 && adds.last == 0 || near != null;
    }

    /** Whether a copy finds there what frames of the queue were to write before it. */
    boolean isCopyInTurn(OutboundFrames frames) {
        return writes.areOver(frames) && adds.areOver(frames);
    }

    /**
     * The same for a copy to a window: it does not wait for those that add elsewhere, as a signal is not held up by
     * what is put behind it.
     */
    boolean isCopyInTurn(OutboundFrames frames, long window, long offset, long bytes) {
        return writes.areOver(frames)
                && (adds.areOver(frames) || addWindow == window && (offset >= addEnd || offset + bytes <= addStart)
                        || addWindow != 0 && addWindow != window);
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
