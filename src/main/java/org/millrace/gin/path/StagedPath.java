package org.millrace.gin.path;

import org.millrace.gin.window.StagingRing;
import org.millrace.gin.window.Window;

/** Bytes go through memory that this rank shares with the peer, and a frame without payload says where they lie. */
final class StagedPath extends FramePath {

    private final StagingRing.Writer ring;

    StagedPath(LocalRank rank, OutboundFrames frames, StagingRing.Writer ring) {
        super(rank, frames);
        this.ring = ring;
    }

    @Override
    long chunk(long size) {
        return StagingRing.piece(size, chunkBytes);
    }

    @Override
    boolean begin(OutboundFrame frame, Window source, long offset, long bytes) {
        long at = ring.begin(frame.transfer, source, offset, bytes);
        if (at < 0) {
            return false;
        }
        frame.staged(at, bytes);
        return true;
    }
}
