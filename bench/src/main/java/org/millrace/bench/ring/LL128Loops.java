package org.millrace.bench.ring;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.LL128Line;
import org.millrace.abi.Protocol;

/** Protocol LL128: fifteen words of data, and a flag that is stored behind them. */
final class LL128Loops {

    private LL128Loops() {
    }

    static final class Device extends RingLoop.Device {

        Device(RingMemory ring, int bytes, int window) {
            super(ring, bytes, window, null);
        }

        @Override
        void post(long step) {
            long flag = LL128Line.flag(step);
            MemorySegment memory = this.memory; // locals: a field is read again after every acquire
            MemorySegment payload = this.payload;
            long line = RingMemory.LAYOUT.slotOffset(Protocol.LL128, step);
            for (long at = 0; at < bytes; at += LL128Line.DATA_BYTES, line += LL128Line.BYTES) {
                MemorySegment.copy(payload, at, memory, line, LL128Line.DATA_BYTES);
                // release: pairs with the proxy's acquire of the flag, and publishes the line
                LL128Line.flagRelease(memory, line, flag);
            }
        }
    }

    static final class Proxy extends RingLoop.Proxy {

        Proxy(RingMemory ring, int bytes) {
            super(ring, bytes);
        }

        @Override
        boolean take(long step) {
            long flag = LL128Line.flag(step);
            MemorySegment memory = this.memory; // locals: a field is read again after every acquire
            MemorySegment payload = this.payload;
            long line = RingMemory.LAYOUT.slotOffset(Protocol.LL128, step);
            for (long at = 0; at < bytes; at += LL128Line.DATA_BYTES, line += LL128Line.BYTES) {
                if (!await(memory, line, flag)) {
                    return false;
                }
                MemorySegment.copy(memory, line, payload, at, LL128Line.DATA_BYTES);
            }
            return true;
        }

        private static boolean await(MemorySegment memory, long line, long flag) {
            for (int i = 0; i < PATIENCE; i++) {
                // acquire: pairs with the device's release of the flag; the line's data can be read
                if (LL128Line.flagAcquire(memory, line) == flag) {
                    return true;
                }
                Thread.onSpinWait();
            }
            return false;
        }
    }
}
