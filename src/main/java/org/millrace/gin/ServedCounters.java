package org.millrace.gin;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.millrace.abi.GinOp;

/**
 * Counts what a context's agent serves. The agent's thread alone writes, without a read-modify-write; any thread may
 * read, each number by itself.
 */
final class ServedCounters {

    private static final VarHandle COUNT = MethodHandles.arrayElementVarHandle(long[].class);
    private static final int PUTS = 0;
    private static final int VALUES = 1;
    private static final int SIGNALS = 2;
    private static final int GETS = 3;
    private static final int FLUSHES = 4;
    private static final int SIGNALLED = 5;
    private static final int REACHED = 6;

    private final long[] counts = new long[REACHED + 1];

    void count(GinDescriptor descriptor) {
        int kind = kind(descriptor);
        increment(kind);
        if (kind <= VALUES && descriptor.signals()) {
            increment(SIGNALLED);
        }
    }

    void countReached() {
        increment(REACHED);
    }

    private static int kind(GinDescriptor descriptor) {
        if (descriptor.has(GinOp.GET)) {
            return GETS;
        }
        if (descriptor.has(GinOp.FLUSH)) {
            return FLUSHES;
        }
        if (descriptor.has(GinOp.VA_SIGNAL) || descriptor.size == 0 && descriptor.signals()) {
            return SIGNALS;
        }
        return descriptor.has(GinOp.INLINE) ? VALUES : PUTS;
    }

    /** Opaque: a reader sees every number some time, and never half of it. */
    private void increment(int index) {
        COUNT.setOpaque(counts, index, counts[index] + 1);
    }

    private long read(int index) {
        return (long) COUNT.getOpaque(counts, index);
    }

    GinServed read() {
        return new GinServed(read(PUTS), read(VALUES), read(SIGNALS), read(GETS), read(FLUSHES), read(SIGNALLED),
                read(REACHED));
    }
}
