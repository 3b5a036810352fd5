package org.millrace.gin;

import org.millrace.abi.gin.GinOp;
import org.millrace.gin.InboundFrames.InboundFrame;

/**
 * Path of this rank's descriptors with this rank as the destination: copies between this rank's own windows. The
 * descriptors take effect in the order in which they begin, like frames from a peer.
 */
final class SelfPath extends Path {

    private final InboundFrames frames;
    private final long chunkBytes;

    SelfPath(LocalRank rank) {
        super(rank);
        frames = new InboundFrames(rank.options().depth());
        chunkBytes = rank.options().chunkBytes();
    }

    @Override
    boolean movePart(QueueDrain drain) {
        if (frames.isFull()) {
            return false;
        }
        GinDescriptor descriptor = drain.current();
        InboundFrame frame = frames.next();
        long bytes = drain.next(chunkBytes);
        if (descriptor.has(GinOp.VA_SIGNAL)) {
            frame.vaSignal(source(drain, descriptor, Long.BYTES), descriptor.sourceOffset, descriptor.signalValue);
        } else if (bytes > 0 && !write(drain, frame, bytes)) {
            return false;
        }
        if (drain.advance(bytes)) {
            if (descriptor.signals() && !descriptor.has(GinOp.VA_SIGNAL)) {
                frame.signal(drain.queue.context(), descriptor.signal, descriptor.signalValue);
            }
            frame.completes(drain.queue, drain.finish());
        }
        frames.add();
        return true;
    }

    private boolean write(QueueDrain drain, InboundFrame frame, long bytes) {
        GinDescriptor descriptor = drain.current();
        Window target = target(drain, descriptor);
        long offset = descriptor.targetOffset + drain.moved();
        if (!descriptor.has(GinOp.INLINE)) {
            return target.beginCopy(frame.transfer, offset, source(drain, descriptor),
                    descriptor.sourceOffset + drain.moved(), bytes);
        }
        if (!target.openWrite(frame.transfer, offset, bytes)) {
            return false;
        }
        frame.transfer.storeInline(descriptor.inlineValue);
        frame.transfer.memory().arrived(frame.transfer);
        return true;
    }

    /** Advances the begun copies and signals, and completes their descriptors. Returns the amount of work done. */
    int settle() {
        // Marks all frames as arrived, because their bytes do not pass through a network.
        frames.allArrived();
        return frames.settle();
    }

    boolean isEmpty() {
        return frames.isEmpty();
    }

    void abandon() {
        frames.abandon();
    }
}
