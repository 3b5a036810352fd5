package org.millrace.bench.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.bench.measure.Loop;

/**
 * Protocol Simple without data, over a ring that is a constant for the compiler. A proxy serves many connections, so
 * its rings cannot be constants. Without the checks of the segments, these loops show the remaining difference between
 * Java and C.
 */
final class ConstantLoops {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final int TIMEOUT = 2_000_000_000;
    private static final long HEAD = RingMemory.LAYOUT.sendMemOffset() + SendMem.HEAD_OFFSET;
    private static final long TAIL = RingMemory.LAYOUT.recvMemOffset() + RecvMem.TAIL_OFFSET;
    private static final int SLOTS = 8;

    private static RingMemory chosen;

    private ConstantLoops() {}

    /** Sets the ring before the first loop runs. */
    static void choose(RingMemory ring) {
        chosen = ring;
    }

    /** The constant ring. The class is initialized at its first use, after {@link #choose}. */
    private static final class Constant {
        private static final MemorySegment RING = chosen.memory();
    }

    /** Returns the device's loop, with one step in flight. */
    static Loop device() {
        return count -> {
            long first = (long) LONG.getAcquire(Constant.RING, HEAD);
            long end = first + count;
            for (long step = first; step != end; step++) {
                LONG.set(Constant.RING, size(step), 0L);
                // release: pairs with the proxy's acquire of tail
                LONG.setRelease(Constant.RING, TAIL, step + 1);
                if (!await(HEAD, step + 1)) {
                    return Loop.LOST;
                }
            }
            return count;
        };
    }

    /** Returns the proxy's loop. */
    static Loop proxy() {
        return count -> {
            long first = (long) LONG.getAcquire(Constant.RING, HEAD);
            long end = first + count;
            long sum = 0;
            for (long step = first; step != end; step++) {
                if (!await(TAIL, step + 1)) {
                    return Loop.LOST;
                }
                sum += (long) LONG.get(Constant.RING, size(step));
                LONG.set(Constant.RING, size(step), RecvMem.EMPTY);
                // release: pairs with the device's acquire of head
                LONG.setRelease(Constant.RING, HEAD, step + 1);
            }
            return sum;
        };
    }

    private static long size(long step) {
        return RingMemory.SIZE_0 + (step & SLOTS - 1) * RingMemory.ENTRY_BYTES;
    }

    private static boolean await(long counter, long value) {
        for (int i = 0; i < TIMEOUT; i++) {
            if ((long) LONG.getAcquire(Constant.RING, counter) - value >= 0) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }
}
