package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.gin.InboundFrames.InboundFrame;
import org.millrace.gin.OutboundFrames.OutboundFrame;

/**
 * Path of the gets that this rank requests from the peer by frames. This path also records the unanswered gets, oldest
 * first. The answers arrive in the order of the requests.
 */
final class GetPath extends Path {

    /**
     * Maximum number of unanswered gets that one rank has requested from another rank; a power of two. The answering
     * rank therefore stores at most this number of gets.
     */
    static final int MAX_GETS = 256;

    /** A get that this rank has requested. The object is reused. */
    static final class Get {
        private PeerQueue queue;
        private int index;
        Window target;
        long offset;
        long missing;

        /** Records that the next {@code bytes} bytes of the answer have a destination in the target window. */
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
        // The peer counts the gets that it receives, so both ranks have the same number for this get.
        asked++;
        return true;
    }

    boolean isEmpty() {
        return asked == answered;
    }

    /** Returns the oldest get that is not completely answered, or null. The next answer belongs to this get. */
    @Nullable
    Get oldest() {
        return isEmpty() ? null : ring[(int) answered & MAX_GETS - 1];
    }

    long oldestNumber() {
        return answered;
    }

    /**
     * Removes the oldest get, because all bytes of its answer have a destination. The get's descriptor completes when
     * the frame with the last bytes is settled.
     *
     * @param frame frame with the last bytes of the answer
     */
    void oldestAnswered(InboundFrame frame) {
        Get get = ring[(int) answered++ & MAX_GETS - 1];
        frame.completes(get.queue, get.index);
        get.target.release();
    }
}
