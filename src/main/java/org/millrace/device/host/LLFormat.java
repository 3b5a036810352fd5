package org.millrace.device.host;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

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
    public void unpack(MemorySegment lines, long at, MemorySegment data, int bytes) {
        int count = (bytes + DATA - 1) / DATA;
        for (int line = 0; line < count; line++) {
            long from = at + line * LLLine.BYTES;
            // Both halves were found complete behind an acquire fence: plain loads are enough.
            long first = lines.get(ValueLayout.JAVA_LONG, from);
            long second = lines.get(ValueLayout.JAVA_LONG, from + Long.BYTES);
            long both = Integer.toUnsignedLong(LLLine.data(first)) | (long) LLLine.data(second) << Integer.SIZE;
            data.set(ValueLayout.JAVA_LONG_UNALIGNED, (long) line * DATA, both);
        }
    }

    @Override
    public void pack(MemorySegment data, int bytes, MemorySegment lines, long at, long step) {
        int flag = LLLine.flag(step);
        int count = (bytes + DATA - 1) / DATA;
        for (int line = 0; line < count; line++) {
            long word = data.get(ValueLayout.JAVA_LONG_UNALIGNED, (long) line * DATA);
            LLLine.storeOpaque(lines, at + line * LLLine.BYTES, LLLine.half((int) word, flag), LLLine.half((int) (word >>> Integer.SIZE), flag));
        }
    }

    /** Just before flags go round the whole slot is flagged: nothing is left in it that would look right again in the next round. */
    @Override
    public long postedBytes(long slotBytes, long lineBytes, long step) {
        return LLLine.isCleaned(step) ? slotBytes : lineBytes;
    }

    @Override
    public boolean movesTail() {
        return false;
    }
}
