package org.millrace.proxy;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

/**
 * Copies from the slots of one connection to those of another, which are begun, go on by themselves or in passes, and
 * complete in the order in which they were begun: what a copy engine does with the commands of one stream. As many as
 * there are slots are under way at the most.
 */
interface SlotCopies {

    /**
     * Begins a copy.
     *
     * @param offset of the slot, on both sides
     * @param bytes  whole lines if the protocol has lines; may be 0
     */
    void begin(Protocol protocol, long offset, long bytes);

    /** Goes on with what is under way, without waiting; returns how much was done. */
    int progress();

    /** {@return how many copies are complete, of all that were ever begun} */
    long completed();

    /** By the thread of the proxy: a bounded piece in each pass, so that a large slot holds up no other connection. */
    final class InPieces implements SlotCopies {

        /** Tens of microseconds. */
        static final long BYTES_A_PASS = 256 << 10;

        private final MemorySegment from;
        private final MemorySegment to;
        private final Protocol[] protocols = new Protocol[ConnectionLayout.SLOTS];
        private final long[] offsets = new long[ConnectionLayout.SLOTS];
        private final long[] sizes = new long[ConnectionLayout.SLOTS];
        private long begun;
        private long completed;
        /** Of the oldest copy under way. */
        private long copied;

        InPieces(MemorySegment from, MemorySegment to) {
            this.from = from;
            this.to = to;
        }

        @Override
        public void begin(Protocol protocol, long offset, long bytes) {
            int index = ConnectionLayout.slot(begun++);
            protocols[index] = protocol;
            offsets[index] = offset;
            sizes[index] = bytes;
        }

        @Override
        public int progress() {
            long left = BYTES_A_PASS;
            int pieces = 0;
            while (completed != begun && left > 0) {
                int index = ConnectionLayout.slot(completed);
                // Lines have an order of their own: they are copied whole, and are no more than a few pieces long.
                long piece = protocols[index] == Protocol.SIMPLE ? Math.min(sizes[index] - copied, left) : sizes[index];
                copy(protocols[index], offsets[index] + copied, piece);
                copied += piece;
                left -= piece;
                pieces++;
                if (copied == sizes[index]) {
                    copied = 0;
                    completed++;
                }
            }
            return pieces;
        }

        private void copy(Protocol protocol, long offset, long bytes) {
            switch (protocol) {
                case LL -> LLLine.copyWords(from, to, offset, bytes);
                case LL128 -> LL128Line.copyRelease(from, to, offset, bytes);
                case SIMPLE -> MemorySegment.copy(from, offset, to, offset, bytes);
            }
        }

        @Override
        public long completed() {
            return completed;
        }
    }
}
