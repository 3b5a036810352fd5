package org.millrace.proxy;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

/**
 * Determines whether the data of a step with lines is complete. The flags in the slot's lines show this. A proxy checks
 * the data that a device posted. A device checks the data that its proxy stored.
 */
public final class LineFlags {

    /**
     * Number of bytes of LL lines after which a check stores its position. The next check of the slot begins at the
     * stored position. A slot that fills slowly is therefore not read repeatedly from its beginning.
     */
    private static final int PIECE_BYTES = 8192;

    private final ConnectionLayout layout;
    private final LL128Line line;
    private final MemorySegment memory;
    private final long[] halves = new long[PIECE_BYTES / Long.BYTES];
    private long llStep;
    private long llBytesSeen;

    /** Creates a checker for the lines of one connection. */
    public LineFlags(ConnectionLayout layout, MemorySegment memory) {
        this.layout = layout;
        this.line = layout.ll128Line();
        this.memory = memory;
    }

    /**
     * Returns whether all LL lines of a step are present. Lines that were found present are not checked again, because
     * their flags stay until the slot is freed.
     *
     * @param size number of bytes of the step's lines
     * @return true if all lines are present; false if a line is missing, or if the size is not possible for a step
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
     * Returns whether all LL128 lines of a step contain the step's flag. No other step writes this flag.
     *
     * @param size number of bytes of the step's lines
     * @return true if all lines contain the flag; false if a line lacks it, or if the size is not possible for a step
     */
    public boolean ll128Ready(long step, long size) {
        if (!line.divides(size) || size > layout.slotBytes(Protocol.LL128) || size < 0) {
            return false;
        }
        return line.areReadyAcquire(memory, layout.slotOffset(Protocol.LL128, step), size, LL128Line.flag(step));
    }
}
