package org.millrace.bench.crossing;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/** A segment in an instance field that a method copies to a local variable first. */
final class LocalSegment {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final MemorySegment line;

    LocalSegment(MemorySegment line) {
        this.line = line;
    }

    private static long word(long i) {
        return (i & 7) << 3;
    }

    long getAcquire(long count) {
        MemorySegment local = line;
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getAcquire(local, word(i));
        }
        return sum;
    }

    long setRelease(long count) {
        MemorySegment local = line;
        for (long i = 0; i < count; i++) {
            LONG.setRelease(local, word(i), i);
        }
        return count;
    }

    long getAndAdd(long count) {
        MemorySegment local = line;
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += (long) LONG.getAndAdd(local, word(i), 1L);
        }
        return sum;
    }
}
