package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

/** A protocol's layout of data in lines with flags. Implementations have no state, and no call allocates. */
interface LineFormat {

    Protocol protocol();

    /** Returns the number of bytes of the lines that the given number of data bytes takes. */
    long lineBytes(long dataBytes);

    /** Returns the number of data bytes that fit into a slot. */
    long dataCapacity(long slotBytes);

    /** Extracts data from lines that have arrived. The piece has room for whole lines. */
    void unpack(MemorySegment lines, long at, Piece data, int bytes);

    /**
     * Writes data as lines. No reader finds a flag without the data that the flag stands for. Bytes after the data may
     * be written to the last line.
     *
     * @param step step that determines the lines' flag
     */
    void pack(Piece data, int bytes, MemorySegment lines, long at, long step);

    /**
     * Returns the number of bytes of lines that a step announces and fills. It is more than {@code lineBytes} in steps
     * that fill more lines than their data takes.
     */
    long postedBytes(long slotBytes, long lineBytes, long step);

    /** Returns whether a step is also posted through tail. */
    boolean movesTail();

    /**
     * A piece of a thread's own memory between the lines and the arithmetic. {@code words} is the view for packing and
     * unpacking lines, and {@code elements} is the same memory for copying and combining.
     */
    record Piece(long[] words, MemorySegment elements) {

        /** Returns a piece of zeros. The length must be a multiple of 8. */
        static Piece of(int bytes) {
            long[] words = new long[bytes / Long.BYTES];
            return new Piece(words, MemorySegment.ofArray(words));
        }
    }

    /**
     * LL: 8 bytes of data in lines of 16 bytes, with two flags in each line. Only the flags show that the lines have
     * arrived.
     */
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
                // Both halves were found complete before an acquire fence. Plain loads are therefore enough, and the
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
         * Returns the whole slot just before the flags wrap around. All lines of the slot then get the current flag, so
         * that no old flag looks valid again in the next round.
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
     * LL128: 120 bytes of data in lines of 128 bytes, with a flag at the end of each line. Lines are written in units
     * of 16, as a warp writes them.
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

        /** Writes the lines with data, and lines without data that fill up the last unit. */
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
