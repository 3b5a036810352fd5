package org.millrace.bench.crossing;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A direct buffer in an instance field, through a view handle. */
final class DirectBuffer {

    private static final VarHandle LONG = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private final ByteBuffer line;

    DirectBuffer(ByteBuffer line) {
        this.line = line;
    }

    private static int word(long i) {
        return (int) (i & 7) << 3;
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
