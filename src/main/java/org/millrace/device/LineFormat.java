package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

/** How a protocol lays data out in lines with flags. Without state; no call allocates. */
interface LineFormat {

    Protocol protocol();

    /** Bytes of the lines that so much data takes. */
    long lineBytes(long dataBytes);

    /** Bytes of data that fit into a slot. */
    long dataCapacity(long slotBytes);

    /** Takes data out of lines that are there. The piece has room for whole lines. */
    void unpack(MemorySegment lines, long at, Piece data, int bytes);

    /**
     * Makes lines of data, so that nobody finds a flag without the data that it vouches for. What lies behind the data
     * may be put into the last line.
     *
     * @param step whose flag the lines carry
     */
    void pack(Piece data, int bytes, MemorySegment lines, long at, long step);

    /**
     * Bytes of lines that a step says and fills: more than {@code lineBytes} where that is more than its data takes.
     */
    long postedBytes(long slotBytes, long lineBytes, long step);

    /** Whether a step is posted by tail, too. */
    boolean movesTail();

    /**
     * A piece of a thread's own memory between lines and the arithmetic: words as lines take it apart, and the same
     * memory as it is copied and combined.
     */
    record Piece(long[] words, MemorySegment elements) {

        /** A piece of zeros; of a length that is a multiple of 8. */
        static Piece of(int bytes) {
            long[] words = new long[bytes / Long.BYTES];
            return new Piece(words, MemorySegment.ofArray(words));
        }
    }

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
                // Both halves were found complete behind an acquire fence: plain loads are enough, and the
                // segment's checks leave the loop.
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
         * Just before flags go round the whole slot is flagged: nothing is left in it that would look right again in
         * the next round.
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

    /**
     * LL128: 120 bytes of data in lines of 128, a flag at the end of each; 16 lines at a time, as a warp writes them.
     */
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
}
