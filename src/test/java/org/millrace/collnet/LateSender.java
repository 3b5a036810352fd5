package org.millrace.collnet;

import org.millrace.net.Forwarding;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;

/**
 * A sender that delays each frame. After a frame was offered, several passes of the agent run before the sender gives
 * the frame to the network.
 */
final class LateSender extends Forwarding.Sender {

    private static final int PASSES = 50;

    private final FrameHeader header = new FrameHeader();
    private MemoryRegion region;
    private long offset;
    private int passes;

    LateSender(FrameSender beneath) {
        super(beneath);
    }

    @Override
    public boolean offer(FrameHeader said, MemoryRegion from, long at) {
        if (region != null) {
            return false;
        }
        header.set(said);
        region = from;
        offset = at;
        passes = PASSES;
        return true;
    }

    @Override
    public int progress() {
        if (region != null && --passes < 0 && inner.offer(header, region, offset)) {
            region = null;
        }
        return super.progress();
    }
}
