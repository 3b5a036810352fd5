package org.millrace.bench.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

/** Protocol LL: every eight bytes carry their own flag, which is the only sign of their arrival. */
final class LLLoops {

    private static final long HALF_BYTES = LLLine.BYTES / 2;

    private LLLoops() {}

    private static int lines(int bytes) {
        return bytes / (int) LLLine.DATA_BYTES;
    }

    static final class Device extends RingLoop.Device {

        private final long[] words = new long[RingMemory.PAYLOAD_BYTES / Long.BYTES];

        Device(RingMemory ring, int bytes, int window) {
            super(ring, bytes, window, null);
        }

        @Override
        void post(long step) {
            LLLine.storeOpaque(memory, RingMemory.LAYOUT.slotOffset(Protocol.LL, step), words, lines(bytes),
                    LLLine.flag(step));
        }
    }

    static final class Proxy extends RingLoop.Proxy {

        /** Halves of the lines of a slot: two for each eight bytes of data. */
        private final long[] halves = new long[2 * RingMemory.PAYLOAD_BYTES / Long.BYTES];

        Proxy(RingMemory ring, int bytes) {
            super(ring, bytes);
        }

        @Override
        boolean take(long step) {
            MemorySegment memory = this.memory;
            MemorySegment payload = this.payload;
            long line = RingMemory.LAYOUT.slotOffset(Protocol.LL, step);
            if (!await(memory, line, lines(bytes) * LLLine.BYTES, LLLine.flag(step))) {
                return false;
            }
            for (long at = 0; at < bytes; at += Integer.BYTES, line += HALF_BYTES) {
                payload.set(ValueLayout.JAVA_INT, at, memory.get(ValueLayout.JAVA_INT, line));
            }
            return true;
        }

        /** Waits as the proxies do: for all lines of a slot at once. The caller reads data only afterwards. */
        private boolean await(MemorySegment memory, long slot, long lineBytes, int flag) {
            for (int i = 0; i < TIMEOUT; i++) {
                if (LLLine.areReadyAcquire(memory, slot, lineBytes, flag, halves)) {
                    return true;
                }
                Thread.onSpinWait();
            }
            return false;
        }
    }
}
