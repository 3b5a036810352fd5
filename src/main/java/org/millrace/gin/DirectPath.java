package org.millrace.gin;

import org.millrace.abi.GinOp;
import org.millrace.gin.OutboundFrames.OutboundFrame;

/**
 * Puts and gets of windows that this rank's device reads and writes at the peer: the device copies, the peer has
 * nothing to do. Each copy has an entry among the frames, which waits for it in its turn, and is sent only for a signal
 * that this rank cannot count up by itself.
 */
final class DirectPath extends Path {

    /** A copy from device to device needs no staging: it is as many chunks long as are worth their call. */
    private static final int CHUNKS = 16;

    private final OutboundFrames frames;
    private final int peer;
    private final long mostBytes;

    DirectPath(LocalRank rank, int peer, OutboundFrames frames) {
        super(rank);
        this.frames = frames;
        this.peer = peer;
        this.mostBytes = CHUNKS * rank.options().chunkBytes();
    }

    /** Whether this rank's device reads and writes a window at the peer. */
    boolean reaches(long handle) {
        Window window = windows.find(handle);
        return window != null && window.memory().reach(peer) > 0;
    }

    @Override
    boolean movePart(QueueDrain drain) {
        GinDescriptor descriptor = drain.current();
        if (frames.isFull() || !isInTurn(drain, descriptor)) {
            return false;
        }
        OutboundFrame frame = frames.next();
        long bytes = drain.next(mostBytes);
        if (!(descriptor.has(GinOp.GET) ? get(drain, frame, bytes) : put(drain, frame, bytes))) {
            return false;
        }
        frame.bringsSignalAtMost(drain.order);
        boolean last = drain.advance(bytes);
        if (last) {
            if (!descriptor.has(GinOp.GET)) {
                frame.signals(descriptor);
            }
            frame.completes(drain.queue, drain.finish());
        }
        long entry = frames.add();
        if (last && !descriptor.has(GinOp.GET)) {
            drain.order.copied(entry, descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
        }
        return true;
    }

    private boolean isInTurn(QueueDrain drain, GinDescriptor descriptor) {
        if (descriptor.has(GinOp.GET)) {
            return drain.order.isCopyInTurn(frames, descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size,
                    false);
        }
        Window target = windows.find(descriptor.targetHandle);
        return drain.order.isCopyInTurn(frames, descriptor.targetHandle, descriptor.targetOffset, descriptor.size,
                target != null && target.isOrdered(descriptor.size));
    }

    private boolean put(QueueDrain drain, OutboundFrame frame, long bytes) {
        GinDescriptor descriptor = drain.current();
        Window target = atPeer(drain, descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
        long offset = descriptor.targetOffset + drain.moved();
        GinHeader.set(frame.header, GinHeader.PUT, drain.context(), descriptor.targetHandle, offset, 0);
        frame.transfer.sequence(drain.order.sequence(), target.isOrdered(descriptor.size));
        return target.beginPeerCopy(frame.transfer, peer, offset, source(drain, descriptor),
                descriptor.sourceOffset + drain.moved(), bytes);
    }

    private boolean get(QueueDrain drain, OutboundFrame frame, long bytes) {
        GinDescriptor descriptor = drain.current();
        Window source = atPeer(drain, descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size);
        GinHeader.nothing(frame.header);
        frame.transfer.sequence(drain.order.sequence(),
                !drain.order.isUntouched(frames, descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size)); // it
                                                                                                                      // finds
                                                                                                                      // what
                                                                                                                      // the
                                                                                                                      // queue's
                                                                                                                      // puts
                                                                                                                      // brought
                                                                                                                      // there
        return source.beginPeerRead(frame.transfer, peer, descriptor.sourceOffset + drain.moved(),
                target(drain, descriptor), descriptor.targetOffset + drain.moved(), bytes);
    }

    /** The window of a handle, whose memory at the peer holds the bytes. */
    private Window atPeer(QueueDrain drain, long handle, long offset, long bytes) {
        Window window = windows.find(handle);
        if (window == null) {
            throw drain.refused(windows.describe(handle));
        }
        long there = window.memory().reach(peer);
        if (offset < 0 || offset > there - bytes) {
            throw drain.refused(bytes + " bytes at " + offset + " are not within " + window + ", which has " + there
                    + " bytes at rank " + peer);
        }
        return window;
    }
}
