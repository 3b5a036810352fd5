package org.millrace.net.shm.ring;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import net.openhft.chronicle.bytes.PointerBytesStore;
import net.openhft.chronicle.core.Memory;
import net.openhft.chronicle.core.OS;

/**
 * A ring as a byte store of Chronicle Bytes, over a mapping that the JDK made. Its accesses save about a nanosecond
 * each, as they check neither bounds nor whether the memory is still mapped: positions are taken modulo the capacity
 * before they come here, the caller's memory is checked by its region, and the mapping lives until nothing refers to it
 * any more, so that no thread can lose it in the middle of a copy.
 */
final class ChronicleMemory extends RingMemory {

    private static final Memory MEMORY = OS.memory();

    /** Keeps the mapping alive. */
    private final MemorySegment segment;
    private final PointerBytesStore store = new PointerBytesStore();

    private ChronicleMemory(MemorySegment segment) {
        this.segment = segment;
        store.set(segment.address(), segment.byteSize());
    }

    static ChronicleMemory map(FileChannel channel, long bytes) throws IOException {
        return new ChronicleMemory(channel.map(MapMode.READ_WRITE, 0, bytes, Arena.ofAuto()));
    }

    @Override
    long getLong(long offset) {
        return store.readLong(offset);
    }

    @Override
    void putLong(long offset, long value) {
        store.writeLong(offset, value);
    }

    @Override
    long getLongAcquire(long offset) {
        return store.readVolatileLong(offset);
    }

    @Override
    void putLongRelease(long offset, long value) {
        store.writeOrderedLong(offset, value);
    }

    @Override
    void copyIn(long offset, MemorySegment from, long fromOffset, long bytes) {
        MEMORY.copyMemory(from.address() + fromOffset, segment.address() + offset, bytes);
        Reference.reachabilityFence(this);
    }

    @Override
    void copyOut(long offset, MemorySegment to, long toOffset, long bytes) {
        MEMORY.copyMemory(segment.address() + offset, to.address() + toOffset, bytes);
        Reference.reachabilityFence(this);
    }

    /** Chronicle promises nothing. */
    @Override
    boolean copiesWholeWords() {
        return false;
    }

    /** Leaves the mapping to the garbage collector. */
    @Override
    public void close() {
        // Nothing here could unmap it safely: an access of another thread would not be noticed.
    }
}
