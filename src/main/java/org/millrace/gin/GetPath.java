package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.gin.InboundFrames.InboundFrame;
import org.millrace.gin.OutboundFrames.OutboundFrame;

/**
 * Gets that are requested from the peer by a frame, and that the peer has not answered yet, oldest first. The answers
 * arrive in this order.
 */
final class GetPath extends Path {

    /** Maximum number of gets that a peer receives before it has answered, and therefore must be able to remember. */
    static final int MAX_GETS = 256;

    /** A get in flight. */
    static final class Get {
        private PeerQueue queue;
        private int index;
        Window target;
        long offset;
        long missing;

        /** Records that a destination was assigned to the next bytes of the answer. */
        void advance(long bytes) {
            offset += bytes;
            missing -= bytes;
        }
    }

    private final OutboundFrames frames;
    private final Get[] ring = new Get[MAX_GETS];
    private long asked;
    private long answered;

    GetPath(LocalRank rank, OutboundFrames frames) {
        super(rank);
        this.frames = frames;
        for (int i = 0; i < MAX_GETS; i++) {
            ring[i] = new Get();
        }
    }

    @Override
    boolean movePart(QueueDrain drain) {
        if (asked - answered == MAX_GETS || frames.isFull()) {
            return false;
        }
        GinDescriptor descriptor = drain.current();
        Get get = ring[(int) asked & MAX_GETS - 1];
        get.target = target(drain, descriptor);
        get.offset = descriptor.targetOffset;
        get.missing = descriptor.size;
        OutboundFrame frame = frames.next();
        GinHeader.set(frame.header, GinHeader.GET, drain.context(), descriptor.sourceHandle, descriptor.sourceOffset,
                descriptor.size);
        frames.add();
        get.queue = drain.queue;
        get.index = drain.finish();
        get.target.hold();
        asked++; // the peer numbers its gets in the same way
        return true;
    }

    boolean isEmpty() {
        return asked == answered;
    }

    /** Returns the get that is answered next, or null. */
    @Nullable
    Get oldest() {
        return isEmpty() ? null : ring[(int) answered & MAX_GETS - 1];
    }

    long oldestNumber() {
        return answered;
    }

    /**
     * Records that a destination was assigned to the last bytes of the oldest get. The get is complete when these bytes
     * are written.
     */
    void oldestAnswered(InboundFrame frame) {
        Get get = ring[(int) answered++ & MAX_GETS - 1];
        frame.completes(get.queue, get.index);
        get.target.letGo();
    }
}
