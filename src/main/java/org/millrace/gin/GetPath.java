package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.gin.InboundFrames.InboundFrame;
import org.millrace.gin.OutboundFrames.OutboundFrame;

/**
 * Gets that the peer is asked for by a frame, and those it has not answered yet, oldest first: the answers come in that
 * order.
 */
final class GetPath extends Path {

    /** How many a peer is asked at once, and so how many it must be able to remember. */
    static final int MOST = 256;

    /** A get under way. */
    static final class Get {
        private PeerQueue queue;
        private int index;
        Window target;
        long offset;
        long missing;

        /** Bytes of the answer have their place. */
        void advance(long bytes) {
            offset += bytes;
            missing -= bytes;
        }
    }

    private final OutboundFrames frames;
    private final Get[] ring = new Get[MOST];
    private long asked;
    private long answered;

    GetPath(LocalRank rank, OutboundFrames frames) {
        super(rank);
        this.frames = frames;
        for (int i = 0; i < MOST; i++) {
            ring[i] = new Get();
        }
    }

    @Override
    boolean movePart(QueueDrain drain) {
        if (asked - answered == MOST || frames.isFull()) {
            return false;
        }
        GinDescriptor descriptor = drain.current();
        Get get = ring[(int) asked & MOST - 1];
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
        asked++; // the peer counts them too
        return true;
    }

    boolean isEmpty() {
        return asked == answered;
    }

    /** The get that is answered next, if there is one. */
    @Nullable
    Get oldest() {
        return isEmpty() ? null : ring[(int) answered & MOST - 1];
    }

    long oldestNumber() {
        return answered;
    }

    /** The last bytes of the oldest get have their place: it is complete when they are there. */
    void oldestAnswered(InboundFrame frame) {
        Get get = ring[(int) answered++ & MOST - 1];
        frame.completes(get.queue, get.index);
        get.target.letGo();
    }
}
