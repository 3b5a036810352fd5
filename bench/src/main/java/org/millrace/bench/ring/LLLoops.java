package org.millrace.bench.ring;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

/** Protocol LL: every eight bytes carry their own flag, and nothing else tells that they are there. */
final class LLLoops {

    private LLLoops() {
    }

    private static int lines(int bytes) {
        return bytes / (int) LLLine.DATA_BYTES;
    }

    private static long[] payload() {
        return new long[RingMemory.PAYLOAD_BYTES / Long.BYTES];
    }

    static final class Device extends RingLoop.Device {

        private final long[] words = payload();

        Device(RingMemory ring, int bytes, int window) {
            super(ring, bytes, window, null);
        }

        @Override
        void post(long step) {
            LLLine.storeOpaque(memory, RingMemory.LAYOUT.slotOffset(Protocol.LL, step), words, lines(bytes), LLLine.flag(step));
        }
    }

    static final class Proxy extends RingLoop.Proxy {

        private final long[] words = payload();

        Proxy(RingMemory ring, int bytes) {
            super(ring, bytes);
        }

        @Override
        boolean take(long step) {
            long slot = RingMemory.LAYOUT.slotOffset(Protocol.LL, step);
            if (!await(memory, slot, lines(bytes) * LLLine.BYTES, LLLine.flag(step))) {
                return false;
            }
            LLLine.loadPlain(memory, slot, words, lines(bytes));
            return true;
        }

        /** As the proxies do: all lines of a slot at once, data only behind them. */
        private static boolean await(MemorySegment memory, long slot, long lineBytes, int flag) {
            for (int i = 0; i < PATIENCE; i++) {
                if (LLLine.areReadyAcquire(memory, slot, lineBytes, flag)) {
                    return true;
                }
                Thread.onSpinWait();
            }
            return false;
        }
    }
}
