package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinOp;
import org.millrace.gin.OutboundFrames.OutboundFrame;

/**
 * Path of the puts, inline values and signals that are sent in frames. The frame's header contains an inline value or a
 * signal. Other bytes are the frame's payload, unless this rank shares a staging ring with the peer. With a staging
 * ring, the bytes are copied into the ring, and the header contains their offset in the ring.
 */
final class FramePath extends Path {

    private final OutboundFrames frames;
    /** Staging ring for the bytes that this rank sends; null if the bytes are sent as payloads. */
    private final StagingRing.@Nullable Writer ring;
    final long chunkBytes;

    FramePath(LocalRank rank, OutboundFrames frames, StagingRing.@Nullable Writer ring) {
        super(rank);
        this.frames = frames;
        this.ring = ring;
        this.chunkBytes = rank.options().chunkBytes();
    }

    /** Returns the maximum number of bytes that one frame transfers, if the whole put has the given size in bytes. */
    long chunk(long size) {
        return ring == null ? chunkBytes : StagingRing.piece(size, chunkBytes);
    }

    /**
     * Begins to open bytes of a window for the network, or to copy them into the staging ring for the peer. Returns
     * false if no staging space is free now.
     */
    boolean begin(OutboundFrame frame, Window source, long offset, long bytes) {
        StagingRing.Writer staging = ring;
        if (staging == null) {
            frame.header.payloadBytes(bytes);
            return source.openRead(frame.transfer, offset, bytes);
        }
        long at = staging.begin(frame.transfer, source, offset, bytes);
        if (at < 0) {
            return false;
        }
        frame.staged(at, bytes);
        return true;
    }

    @Override
    boolean movePart(QueueDrain drain) {
        if (frames.isFull()) {
            return false;
        }
        GinDescriptor descriptor = drain.current();
        OutboundFrame frame = frames.next();
        long bytes = 0;
        if (descriptor.has(GinOp.VA_SIGNAL)) {
            GinHeader.set(frame.header, GinHeader.VA_SIGNAL, drain.context(), descriptor.sourceHandle,
                    descriptor.sourceOffset, 0);
        } else {
            GinHeader.set(frame.header, GinHeader.PUT, drain.context(), descriptor.targetHandle,
                    descriptor.targetOffset + drain.moved(), 0);
            if (descriptor.has(GinOp.INLINE)) {
                bytes = descriptor.size;
                GinHeader.inline(frame.header, bytes, descriptor.inlineValue);
            } else if (descriptor.size == 0) {
                frame.bringsSignalAtMost(drain.order);
            } else {
                bytes = drain.next(chunk(descriptor.size));
                if (!begin(frame, source(drain, descriptor), descriptor.sourceOffset + drain.moved(), bytes)) {
                    return false;
                }
            }
        }
        if (drain.advance(bytes)) {
            frame.signals(descriptor);
            frame.completes(drain.queue, drain.finish());
        }
        long entry = frames.add();
        if (descriptor.has(GinOp.VA_SIGNAL)) {
            drain.order.added(entry, descriptor.sourceHandle, descriptor.sourceOffset);
        } else if (bytes > 0) {
            drain.order.wrote(entry, descriptor.targetHandle, descriptor.targetOffset, descriptor.size);
        }
        return true;
    }
}
