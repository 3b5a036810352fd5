package org.millrace.cli;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;
import org.millrace.MillraceException;

/** A barrier in shared memory. Word 0 counts arrivals. Word 1 is not 0 if a rank has failed. */
final class MappedBarrier {

    static final long BYTES = 64;
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final long ARRIVALS = 0;
    private static final long FAILED = 8;

    private final MemorySegment memory;
    private final int size;

    MappedBarrier(MemorySegment memory, int size) {
        this.memory = memory;
        this.size = size;
    }

    /** Returns when all ranks have called this method as often as the calling rank has. */
    void await() {
        long arrival = (long) LONG.getAndAdd(memory, ARRIVALS, 1L);
        long target = (arrival / size + 1) * size;
        while ((long) LONG.getVolatile(memory, ARRIVALS) < target) {
            check();
            Thread.yield();
        }
    }

    void awaitFailure() {
        while (true) {
            check();
            LockSupport.parkNanos(1_000_000);
        }
    }

    void fail() {
        LONG.setVolatile(memory, FAILED, 1L);
    }

    void check() {
        if ((long) LONG.getVolatile(memory, FAILED) != 0) {
            throw new MillraceException("another rank has failed");
        }
        if (Thread.interrupted()) {
            throw new MillraceException("interrupted");
        }
    }
}
