package org.millrace.bench.ring;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.Protocol;

/** Protocol Simple: data, size, then {@code tail}. */
final class SimpleLoops {

    private SimpleLoops() {}

    static final class Device extends RingLoop.Device {

        Device(RingMemory ring, int bytes, int window, long[] samples) {
            super(ring, bytes, window, samples);
        }

        @Override
        void post(long step) {
            MemorySegment.copy(payload, 0, memory, RingMemory.LAYOUT.slotOffset(Protocol.SIMPLE, step), bytes);
            // release: pairs with the proxy's acquire of tail, and publishes data and size
            recvMem.tailRelease(step + 1);
        }
    }

    static final class Proxy extends RingLoop.Proxy {

        Proxy(RingMemory ring, int bytes) {
            super(ring, bytes);
        }

        @Override
        boolean take(long step) {
            for (int i = 0; i < TIMEOUT; i++) {
                // acquire: pairs with the device's release of tail; data and size can be read
                if (recvMem.tailAcquire() - step > 0) {
                    MemorySegment.copy(memory, RingMemory.LAYOUT.slotOffset(Protocol.SIMPLE, step), payload, 0, bytes);
                    return true;
                }
                Thread.onSpinWait();
            }
            return false;
        }
    }
}
