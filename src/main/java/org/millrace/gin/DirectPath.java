package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinOp;
import org.millrace.gin.OutboundFrames.OutboundFrame;

/**
 * Path for puts and gets if this rank's device can directly access the peer's window. The device copies the bytes, and
 * the peer does nothing. Each copy has an entry in {@link OutboundFrames}. The entry keeps its position among the
 * frames until the copy is complete. A frame is sent for the entry only if the copy's descriptor has a signal that this
 * rank cannot increase directly in the peer's memory.
 */
final class DirectPath extends Path {

    /**
     * Maximum size of one copy, in chunks. A copy between devices needs no staging buffer, so one driver call may copy
     * several chunks.
     */
    private static final int CHUNKS = 16;

    private final OutboundFrames frames;
    private final int peer;
    private final long maxBytes;

    DirectPath(LocalRank rank, int peer, OutboundFrames frames) {
        super(rank);
        this.frames = frames;
        this.peer = peer;
        this.maxBytes = CHUNKS * rank.options().chunkBytes();
    }

    /** Returns whether this rank's device can directly access the peer's part of a window. */
    boolean reaches(@Nullable Window window) {
        return window != null && window.memory().reach(peer) > 0;
    }

    @Override
    boolean movePart(QueueDrain drain) {
        GinDescriptor descriptor = drain.current();
        if (frames.isFull() || !isInTurn(drain, descriptor)) {
            return false;
        }
        OutboundFrame frame = frames.next();
        long bytes = drain.next(maxBytes);
        if (!(descriptor.has(GinOp.GET) ? get(drain, frame, bytes) : put(drain, frame, bytes))) {
            return false;
        }
        frame.bringsSignalAtMost(drain.order);
        boolean last = drain.advance(bytes);
        if (last) {
            if (descriptor.signals() && !descriptor.has(GinOp.GET)) {
                GinHeader.set(frame.header, GinHeader.PUT, drain.context(), descriptor.targetHandle,
                        descriptor.targetOffset, 0);
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
        Window target = drain.target();
        return drain.order.isCopyInTurn(frames, descriptor.targetHandle, descriptor.targetOffset, descriptor.size,
                target != null && target.isOrdered(descriptor.size));
    }

    private boolean put(QueueDrain drain, OutboundFrame frame, long bytes) {
        GinDescriptor descriptor = drain.current();
        Window target =
                atPeer(drain, drain.target(), descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
        long offset = descriptor.targetOffset + drain.moved();
        frame.transfer.sequence(drain.order.sequence(), target.isOrdered(descriptor.size));
        return target.beginPeerCopy(frame.transfer, peer, offset, source(drain, descriptor),
                descriptor.sourceOffset + drain.moved(), bytes);
    }

    private boolean get(QueueDrain drain, OutboundFrame frame, long bytes) {
        GinDescriptor descriptor = drain.current();
        Window source =
                atPeer(drain, drain.source(), descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size);
        frame.transfer.sequence(drain.order.sequence(),
                // A get must read the bytes that earlier puts of this queue write to the same range.
                !drain.order.isUntouched(frames, descriptor.sourceHandle, descriptor.sourceOffset, descriptor.size));
        return source.beginPeerRead(frame.transfer, peer, descriptor.sourceOffset + drain.moved(),
                target(drain, descriptor), descriptor.targetOffset + drain.moved(), bytes);
    }

    /** Returns the window after a check that the peer's memory of this window contains the range of bytes. */
    private Window atPeer(QueueDrain drain, @Nullable Window window, long handle, long offset, long bytes) {
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
