package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

/**
 * The layout of data in lines with flags, for one protocol (LL or LL128). Implementations have no state, and no method
 * allocates.
 */
interface LineFormat {

    Protocol protocol();

    /** Returns the size in bytes of the lines for a number of data bytes. */
    long lineBytes(long dataBytes);

    /** Returns the maximum number of data bytes in the lines of one slot. */
    long dataCapacity(long slotBytes);

    /**
     * Copies the data out of lines that have arrived. The piece must have room for the data of whole lines.
     *
     * @param at offset of the first line
     */
    void unpack(MemorySegment lines, long at, Piece data, int bytes);

    /**
     * Stores data as lines. A reader that finds a flag also finds the flag's data. The rest of the last line may be
     * filled with undefined bytes.
     *
     * @param at   offset of the first line
     * @param step step that determines the flag of the lines
     */
    void pack(Piece data, int bytes, MemorySegment lines, long at, long step);

    /**
     * Returns the size of the lines that a step posts, in bytes. In some steps this size is larger than {@code
     * lineBytes}, because more lines are written than the data needs.
     */
    long postedBytes(long slotBytes, long lineBytes, long step);

    /**
     * Returns whether the device advances tail when it posts a step. If not, only the flags of the lines announce the
     * step.
     */
    boolean movesTail();

    /**
     * Memory of one thread for a piece of data that has been copied out of its lines, or will be copied to lines. The
     * two components are views of the same memory.
     *
     * @param words    view for packing and unpacking of lines
     * @param elements view for copying and combining of elements
     */
    record Piece(long[] words, MemorySegment elements) {

        /**
         * Returns new memory, filled with zeros.
         *
         * @param bytes size in bytes, a multiple of 8
         */
        static Piece of(int bytes) {
            long[] words = new long[bytes / Long.BYTES];
            return new Piece(words, MemorySegment.ofArray(words));
        }
    }

    /**
     * The layout of LL: lines of 16 bytes with 8 bytes of data and two flags. Only the flags show that lines have
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
                // The caller has checked the flags of these lines, and then executed an acquire fence. Plain loads are
                // therefore enough, and the JVM can move the segment's bounds checks out of the loop.
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
         * Returns {@code lineBytes}, except in a step just before the flags wrap around. In such a step it returns the
         * size of the whole slot, so that all lines of the slot get the current flag. A line with an old flag would
         * look valid after the wrap.
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
     * The layout of LL128: lines of 128 bytes with 120 bytes of data and a flag at the end. Lines are written in units
     * of 16 lines, as a warp of NCCL writes them.
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

        /** Stores the lines with data, and lines without data that complete the last unit. */
        @Override
        public void pack(Piece data, int bytes, MemorySegment lines, long at, long step) {
            long flag = LL128Line.flag(step);
            int filled = (bytes + DATA - 1) / DATA;
            int count = (int) (lineBytes(bytes) / LL128Line.BYTES);
            LL128Line.NCCL.storeRelease(lines, at, data.elements(), filled, flag);
            LL128Line.NCCL.flagsRelease(lines, at + filled * LL128Line.BYTES, count - filled, flag);
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
