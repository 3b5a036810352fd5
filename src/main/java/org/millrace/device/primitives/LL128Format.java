package org.millrace.device.primitives;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.LL128Line;
import org.millrace.abi.Protocol;
import org.millrace.device.primitives.LineFormat.Piece;

/** LL128: 120 bytes of data in lines of 128, a flag at the end of each; 16 lines at a time, as a warp writes them. */
final class LL128Format implements LineFormat {

    private static final int DATA = (int) LL128Line.DATA_BYTES;
    private static final long UNIT_BYTES = LL128Line.UNIT_LINES * LL128Line.BYTES;
    private static final long UNIT_DATA_BYTES = LL128Line.UNIT_LINES * LL128Line.DATA_BYTES;

    @Override
    public Protocol protocol() {
        return Protocol.LL128;
    }

    @Override
    public long lineBytes(long dataBytes) {
        return (dataBytes + UNIT_DATA_BYTES - 1) / UNIT_DATA_BYTES * UNIT_BYTES;
    }

    @Override
    public long dataCapacity(long slotBytes) {
        return slotBytes / UNIT_BYTES * UNIT_DATA_BYTES;
    }

    @Override
    public void unpack(MemorySegment lines, long at, Piece data, int bytes) {
        int line = 0;
        for (int done = 0; done < bytes; done += DATA) {
            MemorySegment.copy(lines, at + line * LL128Line.BYTES, data.elements(), done, DATA);
            line++;
        }
    }

    /** The lines with data, and those without that fill up the last unit. */
    @Override
    public void pack(Piece data, int bytes, MemorySegment lines, long at, long step) {
        long flag = LL128Line.flag(step);
        int filled = (bytes + DATA - 1) / DATA;
        int count = (int) (lineBytes(bytes) / LL128Line.BYTES);
        LL128Line.storeRelease(lines, at, data.elements(), filled, flag);
        LL128Line.flagsRelease(lines, at + filled * LL128Line.BYTES, count - filled, flag);
    }

    @Override
    public long postedBytes(long slotBytes, long lineBytes, long step) {
        return lineBytes;
    }

    @Override
    public boolean movesTail() {
        return true;
    }
}
