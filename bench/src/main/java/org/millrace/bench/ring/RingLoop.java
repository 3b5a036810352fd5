package org.millrace.bench.ring;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.bench.measure.Loop;

/**
 * The repeated work of one side of a ring: the device that posts steps, or the proxy that takes them. {@code ring.c}
 * has the same loops. Device and proxy run the same number of steps, and both begin at {@code head}, where the previous
 * run ended.
 */
abstract class RingLoop implements Loop {

    /** Number of polls of a flag after which the other side is considered dead. This takes some seconds. */
    static final int TIMEOUT = 2_000_000_000;

    final MemorySegment memory;
    final SendMem sendMem;
    final RecvMem recvMem;
    final int bytes;
    final MemorySegment payload = Arena.global().allocate(RingMemory.PAYLOAD_BYTES, 64);

    RingLoop(RingMemory ring, int bytes) {
        this.bytes = bytes;
        memory = ring.memory();
        sendMem = ring.sendMem();
        recvMem = ring.recvMem();
    }

    /** Posts steps, with at most a window of them in flight. */
    abstract static class Device extends RingLoop {

        private final int window;
        private final long[] samples;

        /** {@code samples} is the destination of each step's time, null if times are not recorded. */
        Device(RingMemory ring, int bytes, int window, long[] samples) {
            super(ring, bytes);
            this.window = window;
            this.samples = samples;
        }

        @Override
        public long run(long count) {
            long first = sendMem.headAcquire();
            long end = first + count;
            long before = samples == null ? 0 : System.nanoTime();
            for (long step = first; step != end; step++) {
                if (!awaitHead(step + 1 - window)) {
                    return LOST;
                }
                if (samples != null) {
                    long now = System.nanoTime();
                    samples[(int) (step - first)] = now - before;
                    before = now;
                }
                recvMem.sizePlain(ConnectionLayout.slot(step), bytes);
                post(step);
            }
            return awaitHead(end) ? count : LOST;
        }

        /** Writes the slot and announces it. */
        abstract void post(long step);

        private boolean awaitHead(long target) {
            for (int i = 0; i < TIMEOUT; i++) {
                // acquire: pairs with the proxy's release of head; the slot and its size may be written again
                if (sendMem.headAcquire() - target >= 0) {
                    return true;
                }
                Thread.onSpinWait();
            }
            return false;
        }
    }

    /** Takes steps and frees their slots, like a proxy with a network without cost. */
    abstract static class Proxy extends RingLoop {

        Proxy(RingMemory ring, int bytes) {
            super(ring, bytes);
        }

        @Override
        public long run(long count) {
            long first = sendMem.headAcquire();
            long end = first + count;
            long sum = 0;
            for (long step = first; step != end; step++) {
                if (!take(step)) {
                    return LOST;
                }
                int slot = ConnectionLayout.slot(step);
                sum += recvMem.sizePlain(slot);
                recvMem.sizePlain(slot, RecvMem.EMPTY);
                // release: pairs with the device's acquire of head, after which it sees the reset size and may write
                // the slot
                sendMem.headRelease(step + 1);
            }
            return sum;
        }

        /** Waits for a step's data and copies it out. Returns false if it does not arrive. */
        abstract boolean take(long step);
    }
}
