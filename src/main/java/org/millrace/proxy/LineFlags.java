package org.millrace.proxy;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

/**
 * Determines from the flags in a slot's lines whether a step's data is complete. A proxy checks the data that a device
 * posted, and a device checks the data that its proxy stored.
 */
public final class LineFlags {

    /**
     * Bytes of a piece. Lines are checked in pieces, so that a slot that fills slowly is not read from its beginning
     * repeatedly.
     */
    private static final int PIECE_BYTES = 8192;

    private final ConnectionLayout layout;
    private final MemorySegment memory;
    private final long[] halves = new long[PIECE_BYTES / Long.BYTES];
    private long llStep;
    private long llBytesSeen;

    /** Creates a checker of one connection's lines. */
    public LineFlags(ConnectionLayout layout, MemorySegment memory) {
        this.layout = layout;
        this.memory = memory;
    }

    /**
     * Returns whether all LL lines of a step are present. Lines that were seen once are not checked again, because a
     * flag stays until the slot is freed.
     *
     * @param size number of bytes of the step's lines
     * @return false also if no step can have this size
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
     * Returns whether all LL128 lines of a step carry its flag. Only this step can have written that flag.
     *
     * @param size number of bytes of the step's lines
     * @return false also if no step can have this size
     */
    public boolean ll128Ready(long step, long size) {
        if (size % LL128Line.BYTES != 0 || size > layout.slotBytes(Protocol.LL128) || size < 0) {
            return false;
        }
        return LL128Line.areReadyAcquire(memory, layout.slotOffset(Protocol.LL128, step), size, LL128Line.flag(step));
    }
}
