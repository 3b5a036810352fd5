package org.millrace.device.primitives;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.device.primitives.LineFormat.Piece;

/** LL: 8 bytes of data in lines of 16, two flags in each. Nothing but the lines says that they are there. */
final class LLFormat implements LineFormat {

    private static final int DATA = (int) LLLine.DATA_BYTES;

    @Override
    public Protocol protocol() {
        return Protocol.LL;
    }

    @Override
    public long lineBytes(long dataBytes) {
        return (dataBytes + DATA - 1) / DATA * LLLine.BYTES;
    }

    @Override
    public long dataCapacity(long slotBytes) {
        return slotBytes / LLLine.BYTES * DATA;
    }

    @Override
    public void unpack(MemorySegment lines, long at, Piece data, int bytes) {
        long[] words = data.words();
        int count = (bytes + DATA - 1) / DATA;
        for (int line = 0; line < count; line++) {
            long from = at + line * LLLine.BYTES;
            // Both halves were found complete behind an acquire fence: plain loads are enough, and the segment's checks
            // leave the loop.
            long first = lines.get(ValueLayout.JAVA_LONG, from);
            long second = lines.get(ValueLayout.JAVA_LONG, from + Long.BYTES);
            words[line] = Integer.toUnsignedLong(LLLine.data(first)) | (long) LLLine.data(second) << Integer.SIZE;
        }
    }

    @Override
    public void pack(Piece data, int bytes, MemorySegment lines, long at, long step) {
        LLLine.storeOpaque(lines, at, data.words(), (bytes + DATA - 1) / DATA, LLLine.flag(step));
    }

    /**
     * Just before flags go round the whole slot is flagged: nothing is left in it that would look right again in the
     * next round.
     */
    @Override
    public long postedBytes(long slotBytes, long lineBytes, long step) {
        return LLLine.isCleaned(step) ? slotBytes : lineBytes;
    }

    @Override
    public boolean movesTail() {
        return false;
    }
}
