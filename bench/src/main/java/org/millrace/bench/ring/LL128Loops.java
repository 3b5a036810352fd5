package org.millrace.bench.ring;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.LL128Line;
import org.millrace.abi.Protocol;

/** Protocol LL128: fifteen words of data, and a flag that is stored after them. */
final class LL128Loops {

    private LL128Loops() {}

    private static int lines(int bytes) {
        return bytes / (int) LL128Line.DATA_BYTES;
    }

    static final class Device extends RingLoop.Device {

        Device(RingMemory ring, int bytes, int window) {
            super(ring, bytes, window, null);
        }

        @Override
        void post(long step) {
            LL128Line.NCCL.storeRelease(memory, RingMemory.LAYOUT.slotOffset(Protocol.LL128, step), payload,
                    lines(bytes), LL128Line.flag(step));
        }
    }

    static final class Proxy extends RingLoop.Proxy {

        Proxy(RingMemory ring, int bytes) {
            super(ring, bytes);
        }

        @Override
        boolean take(long step) {
            long line = RingMemory.LAYOUT.slotOffset(Protocol.LL128, step);
            if (!await(memory, line, lines(bytes) * LL128Line.BYTES, LL128Line.flag(step))) {
                return false;
            }
            for (long at = 0; at < bytes; at += LL128Line.DATA_BYTES, line += LL128Line.BYTES) {
                MemorySegment.copy(memory, line, payload, at, LL128Line.DATA_BYTES);
            }
            return true;
        }

        /** Waits as the proxies do: first for all lines of a slot. The caller reads data only afterwards. */
        private static boolean await(MemorySegment memory, long slot, long lineBytes, long flag) {
            for (int i = 0; i < TIMEOUT; i++) {
                if (LL128Line.NCCL.areReadyAcquire(memory, slot, lineBytes, flag)) {
                    return true;
                }
                Thread.onSpinWait();
            }
            return false;
        }
    }
}
