package org.millrace.bench.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;

/** Protocol LL: every eight bytes carry their own flag, and nothing else tells that they are there. */
final class LLLoops {

    private static final long HALF_BYTES = LLLine.BYTES / 2;

    private LLLoops() {
    }

    static final class Device extends RingLoop.Device {

        Device(RingMemory ring, int bytes, int window) {
            super(ring, bytes, window, null);
        }

        @Override
        void post(long step) {
            int flag = LLLine.flag(step);
            MemorySegment memory = this.memory; // locals: a field is read again after every acquire
            MemorySegment payload = this.payload;
            long line = RingMemory.LAYOUT.slotOffset(Protocol.LL, step);
            for (long at = 0; at < bytes; at += LLLine.DATA_BYTES, line += LLLine.BYTES) {
                LLLine.storeOpaque(memory, line,
                        LLLine.half(payload.get(ValueLayout.JAVA_INT, at), flag), LLLine.half(payload.get(ValueLayout.JAVA_INT, at + Integer.BYTES), flag));
            }
        }
    }

    static final class Proxy extends RingLoop.Proxy {

        Proxy(RingMemory ring, int bytes) {
            super(ring, bytes);
        }

        @Override
        boolean take(long step) {
            MemorySegment memory = this.memory;
            MemorySegment payload = this.payload;
            long line = RingMemory.LAYOUT.slotOffset(Protocol.LL, step);
            if (!await(memory, line, bytes / LLLine.DATA_BYTES * LLLine.BYTES, LLLine.flag(step))) {
                return false;
            }
            for (long at = 0; at < bytes; at += Integer.BYTES, line += HALF_BYTES) {
                payload.set(ValueLayout.JAVA_INT, at, memory.get(ValueLayout.JAVA_INT, line));
            }
            return true;
        }

        /** As the proxies do: all lines of a slot at once, data only behind them. */
        private static boolean await(MemorySegment memory, long line, long lineBytes, int flag) {
            for (int i = 0; i < PATIENCE; i++) {
                if (LLLine.areReadyAcquire(memory, line, lineBytes, flag)) {
                    return true;
                }
                Thread.onSpinWait();
            }
            return false;
        }
    }
}
