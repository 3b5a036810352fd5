package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.gin.SignalMemory.PeerSignals;
import org.millrace.net.FrameHeader;

/**
 * The order between the paths of one queue. A program may rely on two guarantees. A signal becomes visible after all
 * earlier puts. A put or a get of a range of bytes takes effect after the earlier puts to the same range. Each path
 * keeps this order among its own operations. However, operations of different paths take effect at different times. A
 * frame takes effect when the peer settles it, that is, has completed the writes and the signal of the frame. A copy
 * may take effect as soon as it is begun. A signal that this rank increases directly in the peer's memory takes effect
 * immediately. Three rules therefore apply between operations of different paths:
 *
 * <pre>
 *   first        then         rule
 *   copy         frame        The copy has an entry in {@link OutboundFrames}, which sends no later frame before the
 *                             copy is complete.
 *   frame        copy         The copy begins after the peer has reported that the frame is settled. A frame that
 *                             writes other bytes does not delay the copy. A small copy in a strict window, however,
 *                             waits for all frames that write bytes: {@link #isCopyInTurn}. If this rank cannot read
 *                             the peer's reports, the queue makes no copies after its first frame that writes to a
 *                             window: {@link #canCopy}.
 *   copy, frame  signal       If the peer has settled all frames that this rank has sent, this rank increases the
 *                             signal directly. Otherwise a frame contains the signal: {@link #signal}.
 * </pre>
 */
final class PathOrder {

    private final GinContext context;
    private final int sequence;
    /**
     * The peer's memory with its signals, and with the number of this rank's frames that the peer has settled. Null if
     * the peer does not share that memory with this rank.
     */
    private final @Nullable PeerSignals near;
    /**
     * {@link #writes} are the queue's frames that write bytes to a window of the peer. {@link #adds} are the queue's
     * frames that add to a signal in a window of the peer.
     */
    private final Entries writes = new Entries(true);
    private final Entries adds = new Entries(true);
    /** The queue's copies to windows of the peer. */
    private final Entries copies = new Entries(false);

    /**
     * The queue's entries of one kind in {@link OutboundFrames}, up to the newest entry. Records a range that contains
     * all bytes that these entries write.
     */
    private final class Entries {
        private final boolean areFrames;
        /** Ordinal of the newest entry, from 1; 0 if there was none, or if all entries have taken effect. */
        private long last;
        /**
         * Number of frames that were offered to the network. The number is recorded at the first check after the newest
         * entry was offered, and is 0 before that check. When the peer has settled this number of frames, all entries
         * have taken effect. Always 0 for copies.
         */
        private long sentByThen;
        /**
         * Range of the bytes of all entries that are not known to have taken effect: handle of the window, offset of
         * the first byte, and offset after the last byte. The handle is 0 if the entries write to several windows.
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
                // An entry of a copy counts as offered only when the copy is complete, so its effect needs no further
                // check.
                last = areFrames ? last : 0;
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
     * Returns the number that identifies a sequence of copies. Copies of one context to one peer form a sequence and
     * may have an order among themselves.
     */
    static int sequence(int context, int peer, int ranks) {
        return context * ranks + peer;
    }

    /** Returns the number of the sequence that contains the queue's copies. */
    int sequence() {
        return sequence;
    }

    /** Records that a frame of the queue writes bytes to a window of the peer. */
    void wrote(long entry, long window, long offset, long bytes) {
        writes.add(entry, window, offset, bytes);
    }

    /** Records that a frame of the queue adds a value to a number of 8 bytes in a window of the peer. */
    void added(long entry, long window, long offset) {
        adds.add(entry, window, offset, Long.BYTES);
    }

    /** Records a copy that the queue makes to a window of the peer. */
    void copied(long entry, long window, long offset, long bytes) {
        copies.add(entry, window, offset, bytes);
    }

    /**
     * Returns whether this rank can detect that the queue's next copy may begin. If it cannot, the bytes must be sent
     * in frames.
     */
    boolean canCopy() {
        return writes.last == 0 && adds.last == 0 || near != null;
    }

    /**
     * Returns whether a copy that accesses the given bytes of the peer's window may begin. The copy may begin if each
     * earlier frame has taken effect or writes other bytes.
     *
     * @param ordered whether the copy must also wait for earlier frames that write other bytes, except for frames that
     *                only add to a signal
     */
    boolean isCopyInTurn(OutboundFrames frames, long window, long offset, long bytes, boolean ordered) {
        return (writes.areOver(frames) || !ordered && writes.areElsewhere(window, offset, bytes))
                && (adds.areOver(frames) || adds.areElsewhere(window, offset, bytes));
    }

    /** Returns whether none of the queue's copies in flight writes to the given bytes of the peer's window. */
    boolean isUntouched(OutboundFrames frames, long window, long offset, long bytes) {
        return copies.areOver(frames) || copies.areElsewhere(window, offset, bytes);
    }

    /**
     * Increases the signal that a frame's header identifies. The increase is made directly in the peer's memory.
     * Returns false if that is not possible now, so that the frame must be sent.
     *
     * @param sent number of frames that this rank has offered to the peer
     */
    boolean signal(FrameHeader header, long sent) {
        if (near == null || !near.add(sent, (int) GinHeader.signal(header), GinHeader.value(header))) {
            return false;
        }
        context.countReached();
        return true;
    }
}
