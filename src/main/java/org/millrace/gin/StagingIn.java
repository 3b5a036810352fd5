package org.millrace.gin;

import org.millrace.net.FrameHeader;

/** The receiver's end of a {@link StagingRing}. On the agent's thread. */
final class StagingIn {

    private final StagingRing ring;
    private long expected;

    StagingIn(StagingRing ring) {
        this.ring = ring;
        this.expected = ring.released().acquire(0);
    }

    /**
     * What is wrong with where a frame says that its bytes are staged, or null: the place follows from what came
     * before.
     */
    String problem(FrameHeader header, long chunkBytes) {
        long bytes = GinHeader.stagedBytes(header);
        if (bytes < 1 || bytes > chunkBytes) {
            return bytes + " bytes are staged, and 1 to " + chunkBytes + " may be";
        }
        long offset = ring.offset(ring.start(expected, bytes));
        return GinHeader.stagedOffset(header) == offset ? null
                : "its bytes are staged at " + GinHeader.stagedOffset(header) + ", and not at " + offset;
    }

    /** Begins to write a frame's bytes, whose place was checked, to a window; false if too much is under way. */
    boolean begin(FrameHeader header, Landing landing, Window target, long targetOffset) {
        long bytes = GinHeader.stagedBytes(header);
        long start = ring.start(expected, bytes);
        if (!target.beginCopyIn(landing.transfer, targetOffset, ring, ring.offset(start), bytes)) {
            return false;
        }
        expected = StagingRing.end(start, bytes);
        landing.staged(this, expected);
        return true;
    }

    /**
     * Gives the room up to a position back. A release, behind the copies: pairs with the acquire of the sender, who
     * writes there next.
     */
    void release(long position) {
        ring.released().release(0, position);
    }
}
