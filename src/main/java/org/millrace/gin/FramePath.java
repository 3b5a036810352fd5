package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.GinOp;
import org.millrace.gin.OutboundFrames.OutboundFrame;

/**
 * Puts, values and signals in frames. The header contains a value or a signal. Bytes are the payload, or they are
 * copied to memory that this rank shares with the peer, and the header contains their location.
 */
final class FramePath extends Path {

    private final OutboundFrames frames;
    /** Ring for staged bytes; null if bytes are the payload. */
    private final StagingRing.@Nullable Writer ring;
    final long chunkBytes;

    FramePath(LocalRank rank, OutboundFrames frames, StagingRing.@Nullable Writer ring) {
        super(rank);
        this.frames = frames;
        this.ring = ring;
        this.chunkBytes = rank.options().chunkBytes();
    }

    /** Returns the maximum number of bytes that one frame transfers, for a put of the given size. */
    long chunk(long size) {
        return ring == null ? chunkBytes : StagingRing.piece(size, chunkBytes);
    }

    /** Begins to make bytes readable for the peer. Returns false if no room is available now. */
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
