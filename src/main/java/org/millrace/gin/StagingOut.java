package org.millrace.gin;

/** The sender's end of a {@link StagingRing}. On the agent's thread. */
final class StagingOut {

    private final StagingRing ring;
    private final int peer;
    private long taken;
    /** The peer's word, as it was last read: between its last value and {@link #taken}, whatever the peer writes. */
    private long released;

    StagingOut(StagingRing ring, int peer) {
        this.ring = ring;
        this.peer = peer;
        this.taken = ring.released().acquire(0);
        this.released = taken;
    }

    /** Begins to stage a frame's bytes, and has its header say where; false if there is no room now. */
    boolean begin(Outgoing frame, Window source, long sourceOffset, long bytes) {
        long start = ring.start(taken, bytes);
        long end = StagingRing.end(start, bytes);
        if (end - released > ring.capacity() && end - look() > ring.capacity()) {
            return false;
        }
        long offset = ring.offset(start);
        if (!source.beginCopyOut(frame.transfer, sourceOffset, ring, offset, bytes)) {
            return false;
        }
        taken = end;
        frame.stage();
        GinHeader.staged(frame.header, offset, bytes);
        return true;
    }

    /** An acquire: pairs with the peer's release, behind which its copies were made. */
    private long look() {
        long now = ring.released().acquire(0);
        if (now - released < 0 || taken - now < 0) {
            throw new GinException("rank " + peer + " says it has read the bytes that are staged for it up to " + now
                    + ": it had read them up to " + released + " before, and they end at " + taken);
        }
        released = now;
        return now;
    }
}
