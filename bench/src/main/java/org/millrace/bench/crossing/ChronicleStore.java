package org.millrace.bench.crossing;

import java.lang.foreign.MemorySegment;
import net.openhft.chronicle.bytes.PointerBytesStore;

/** Chronicle Bytes over the same memory: unchecked accesses through a store in an instance field. */
final class ChronicleStore {

    private final PointerBytesStore store = new PointerBytesStore();

    ChronicleStore(MemorySegment line) {
        store.set(line.address(), line.byteSize());
    }

    private static long word(long i) {
        return (i & 7) << 3;
    }

    long getAcquire(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += store.readVolatileLong(word(i));
        }
        return sum;
    }

    long setRelease(long count) {
        for (long i = 0; i < count; i++) {
            store.writeOrderedLong(word(i), i);
        }
        return count;
    }

    long setVolatile(long count) {
        for (long i = 0; i < count; i++) {
            store.writeVolatileLong(word(i), i);
        }
        return count;
    }

    long getAndAdd(long count) {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            sum += store.addAndGetLong(word(i), 1L);
        }
        return sum;
    }
}
