package org.millrace.net.shm.ring;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;

/**
 * A ring as a memory segment. Every access is checked against its length, and against its being mapped: one after
 * {@link #close} throws {@link IllegalStateException}, whichever thread closed.
 */
final class SegmentMemory extends RingMemory {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final Arena arena;
    private final MemorySegment segment;

    private SegmentMemory(Arena arena, MemorySegment segment) {
        this.arena = arena;
        this.segment = segment;
    }

    static SegmentMemory map(FileChannel channel, long bytes) throws IOException {
        // Shared, so that any thread may close it: the threads that use it then get an exception, and never touch
        // memory that is unmapped.
        Arena arena = Arena.ofShared();
        try {
            return new SegmentMemory(arena, channel.map(MapMode.READ_WRITE, 0, bytes, arena));
        } catch (IOException | RuntimeException e) {
            arena.close();
            throw e;
        }
    }

    @Override
    long getLong(long offset) {
        return segment.get(ValueLayout.JAVA_LONG, offset);
    }

    @Override
    void putLong(long offset, long value) {
        segment.set(ValueLayout.JAVA_LONG, offset, value);
    }

    @Override
    long getLongAcquire(long offset) {
        return (long) LONG.getAcquire(segment, offset);
    }

    @Override
    void putLongRelease(long offset, long value) {
        LONG.setRelease(segment, offset, value);
    }

    @Override
    void copyIn(long offset, MemorySegment from, long fromOffset, long bytes) {
        MemorySegment.copy(from, fromOffset, segment, offset, bytes);
    }

    @Override
    void copyOut(long offset, MemorySegment to, long toOffset, long bytes) {
        MemorySegment.copy(segment, offset, to, toOffset, bytes);
    }

    /**
     * {@link MemorySegment#copy} is made of {@code jdk.internal.misc.Unsafe.copyMemory}, which promises "coherent
     * units", and below 64 bytes of accesses of 8.
     */
    @Override
    boolean copiesWholeWords() {
        return true;
    }

    @Override
    public synchronized void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
