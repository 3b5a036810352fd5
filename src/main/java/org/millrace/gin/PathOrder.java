package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.gin.SignalMemory.PeerSignals;
import org.millrace.net.FrameHeader;

/**
 * The order between the paths of one queue. A program may rely on two guarantees. A signal becomes visible after all
 * earlier puts. A get or a put finds the bytes that earlier puts wrote to the same place. Each path keeps its own
 * order. Frames, however, take effect when the peer carries them out, and copies as soon as they are begun. Signals
 * that this rank increases directly in a peer's memory take effect at once. Three rules therefore apply where paths
 * meet:
 *
 * <pre>
 *   first        then         rule
 *   copy         frame        The copy has an entry among the frames. {@link OutboundFrames} sends no later frame
 *                             before the copy is complete.
 *   frame        copy         The copy begins when the peer has reported that it has carried the frames out, unless they
 *                             write other bytes than the copy. A small copy in a strict window waits for all bytes that
 *                             frames write. If this rank cannot read the peer's reports, it copies only as long as no
 *                             frame of the queue writes at the peer: {@link #canCopy}, {@link #isCopyInTurn}.
 *   copy, frame  signal       The signal is increased without a frame if the peer has carried out all frames that were
 *                             sent. Otherwise a frame contains it: {@link #signal}.
 * </pre>
 */
final class PathOrder {

    private final GinContext context;
    private final int sequence;
    /** The peer's reports about this rank's frames; null if this rank does not share memory with it. */
    private final @Nullable PeerSignals near;
    /** Frames of the queue that write bytes at the peer, and frames that add to signals in a window there. */
    private final Entries writes = new Entries(true);
    private final Entries adds = new Entries(true);
    /** Copies of the queue to the peer. */
    private final Entries copies = new Entries(false);

    /** Some of the queue's entries among the frames, up to the last one, and the bytes that they write. */
    private final class Entries {
        private final boolean areFrames;
        /** Number of the last entry, from 1 on; 0 without an entry, or if it was carried out. */
        private long last;
        /**
         * Number of frames that had been sent to the network when the last entry was found to be offered; 0 before
         * that, and always for copies.
         */
        private long sentByThen;
        /**
         * Range of bytes of the entries that may still be incomplete: the window, the first byte, and the end. If the
         * window is 0, the entries write to several windows.
         */
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
                last = areFrames ? last : 0; // a copy's entry is passed when the copy is complete
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

    /**
     * Returns the number of a sequence of copies of one rank that keep their order: the copies of one context to one
     * peer.
     */
    static int sequence(int context, int peer, int ranks) {
        return context * ranks + peer;
    }

    /** Returns the sequence number of the queue's copies. */
    int sequence() {
        return sequence;
    }

    /** Records that a frame of the queue writes bytes to a window at the peer. */
    void wrote(long entry, long window, long offset, long bytes) {
        writes.add(entry, window, offset, bytes);
    }

    /** Records that a frame of the queue adds to 8 bytes of a window at the peer. */
    void added(long entry, long window, long offset) {
        adds.add(entry, window, offset, Long.BYTES);
    }

    /** Records that a copy of the queue writes to a window at the peer. */
    void copied(long entry, long window, long offset, long bytes) {
        copies.add(entry, window, offset, bytes);
    }

    /** Returns whether a copy of the queue can keep its order, now or later. Otherwise its bytes are sent in frames. */
    boolean canCopy() {
        return writes.last == 0 && adds.last == 0 || near != null;
    }

    /**
     * Returns whether a copy may access bytes of a window at the peer, because earlier frames have already written
     * their bytes there.
     *
     * @param ordered whether the copy must come after all bytes that earlier frames write, regardless of their location
     */
    boolean isCopyInTurn(OutboundFrames frames, long window, long offset, long bytes, boolean ordered) {
        return (writes.areOver(frames) || !ordered && writes.areElsewhere(window, offset, bytes))
                && (adds.areOver(frames) || adds.areElsewhere(window, offset, bytes));
    }

    /** Returns whether no copy of the queue that is in flight writes bytes of a window at the peer. */
    boolean isUntouched(OutboundFrames frames, long window, long offset, long bytes) {
        return copies.areOver(frames) || copies.areElsewhere(window, offset, bytes);
    }

    /**
     * Increases a frame's signal directly in the peer's memory. Returns false if the frame must transfer the signal.
     *
     * @param sent number of frames that were sent to the peer
     */
    boolean signal(FrameHeader header, long sent) {
        if (near == null || !near.add(sent, (int) GinHeader.signal(header), GinHeader.value(header))) {
            return false;
        }
        context.countReached();
        return true;
    }
}
