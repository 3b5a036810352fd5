package org.millrace.bench.crossing;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/** A segment in an instance field, as in an object that serves one of many connections. */
final class InstanceSegment {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final MemorySegment line;

    InstanceSegment(MemorySegment line) {
        this.line = line;
    }

    private static long word(long i) {
        return (i & 7) << 3;
    }

    long getAcquire(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getAcquire(line, word(i));
        }
        return sum;
    }

    long setRelease(long count) {
        for (long i = 0; i < count; i++) {
            LONG.setRelease(line, word(i), i);
        }
        return count;
    }

    long getAndAdd(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getAndAdd(line, word(i), 1L);
        }
        return sum;
    }
}
