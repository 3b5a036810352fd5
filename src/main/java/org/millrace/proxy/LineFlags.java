package org.millrace.proxy;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

/**
 * Tells from the flags in a slot's lines whether a step's data is all there: to a proxy what a device posted, and to a
 * device what its proxy stored.
 */
public final class LineFlags {

    /**
     * Lines are looked at in pieces, so that a slot that fills slowly is not read from its beginning again and again.
     */
    private static final int PIECE_BYTES = 8192;

    private final ConnectionLayout layout;
    private final MemorySegment memory;
    private final long[] halves = new long[PIECE_BYTES / Long.BYTES];
    private long llStep;
    private long llBytesSeen;

    /** Looks at one connection's lines. */
    public LineFlags(ConnectionLayout layout, MemorySegment memory) {
        this.layout = layout;
        this.memory = memory;
    }

    /**
     * Whether all LL lines of a step are there. Lines once seen are not looked at again: a flag stays until the slot is
     * given back.
     *
     * @param size bytes of its lines
     * @return false also if no step has so many
     */
    public boolean llReady(long step, long size) {
        if (size % LLLine.BYTES != 0 || size > layout.slotBytes(Protocol.LL) || size < 0) {
            return false;
        }
        if (step != llStep) {
            llStep = step;
            llBytesSeen = 0;
        }
        long slot = layout.slotOffset(Protocol.LL, step);
        long at = llBytesSeen;
        while (at < size) {
            long piece = Math.min(PIECE_BYTES, size - at);
            if (!LLLine.areReadyAcquire(memory, slot + at, piece, LLLine.flag(step), halves)) {
                break;
            }
            at += piece;
        }
        llBytesSeen = at;
        return at >= size;
    }

    /**
     * Whether all LL128 lines of a step carry its flag; nothing else can have written it.
     *
     * @param size bytes of its lines
     * @return false also if no step has so many
     */
    public boolean ll128Ready(long step, long size) {
        if (size % LL128Line.BYTES != 0 || size > layout.slotBytes(Protocol.LL128) || size < 0) {
            return false;
        }
        return LL128Line.areReadyAcquire(memory, layout.slotOffset(Protocol.LL128, step), size, LL128Line.flag(step));
    }
}
