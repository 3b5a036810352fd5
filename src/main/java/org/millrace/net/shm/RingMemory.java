package org.millrace.net.shm;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel.MapMode;
import java.nio.channels.FileChannel;
import org.millrace.file.FileName;
import org.millrace.net.connection.ConnectionState;

/**
 * The mapped bytes of a ring. The names of the access methods state their ordering. Each access checks the length of
 * the memory segment, and that the segment is still mapped. After {@link #close}, also by another thread, an access
 * throws an {@link IllegalStateException}.
 */
final class RingMemory {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final FileChannel channel;
    private final Arena arena;
    final MemorySegment segment;
    /** Position in the file for this side's next {@link #append}. */
    private long end;

    private RingMemory(FileChannel channel, Arena arena, MemorySegment segment) {
        this.channel = channel;
        this.arena = arena;
        this.segment = segment;
        end = segment.byteSize();
    }

    /** Maps a file. Closes the channel if the file cannot be mapped. */
    private static RingMemory map(FileChannel channel, long bytes) throws IOException {
        // A shared arena, so that any thread may close it. A thread that uses the memory at that time gets an
        // exception, and cannot access unmapped memory.
        Arena arena = Arena.ofShared();
        try {
            return new RingMemory(channel, arena, channel.map(MapMode.READ_WRITE, 0, bytes, arena));
        } catch (IOException | RuntimeException e) {
            arena.close();
            channel.close();
            throw e;
        }
    }

    long getLong(long offset) {
        return segment.get(ValueLayout.JAVA_LONG, offset);
    }

    void putLong(long offset, long value) {
        segment.set(ValueLayout.JAVA_LONG, offset, value);
    }

    long getLongAcquire(long offset) {
        return (long) LONG.getAcquire(segment, offset);
    }

    void putLongRelease(long offset, long value) {
        LONG.setRelease(segment, offset, value);
    }

    /** Copies from the caller's memory to the ring. */
    void copyIn(long offset, MemorySegment from, long fromOffset, long bytes) {
        MemorySegment.copy(from, fromOffset, segment, offset, bytes);
    }

    /**
     * Copies from the ring to the caller's memory. Stores whole 8-byte words if both addresses and the length are
     * multiples of 8. {@link MemorySegment#copy} guarantees this, because it uses
     * {@code jdk.internal.misc.Unsafe.copyMemory}, which copies in "coherent units". Below 64 bytes it uses accesses of
     * 8 bytes instead.
     */
    void copyOut(long offset, MemorySegment to, long toOffset, long bytes) {
        MemorySegment.copy(segment, offset, to, toOffset, bytes);
    }

    /** Unmaps the ring. May be called repeatedly, and by any thread. */
    synchronized void unmap() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }

    /** Closes the file and unmaps the ring. May be called repeatedly, and by any thread. */
    public final void close() {
        ConnectionState.closeQuietly(channel);
        unmap();
    }

    /**
     * Appends bytes to the ring's file, after the ring and the bytes that were appended before. The bytes stay there
     * until the file is freed. Returns the position of the first byte in the file.
     */
    final long append(MemorySegment from, long fromOffset, long bytes) throws IOException {
        long place = end;
        ByteBuffer buffer = from.asSlice(fromOffset, bytes).asByteBuffer();
        while (buffer.hasRemaining()) {
            end += channel.write(buffer, end);
        }
        return place;
    }

    /**
     * Copies to the caller's memory bytes that the other side has appended to the ring's file.
     *
     * @param place position of the first byte in the file
     */
    final void readAppended(long place, MemorySegment to, long toOffset, long bytes) throws IOException {
        ByteBuffer buffer = to.asSlice(toOffset, bytes).asByteBuffer();
        for (long at = place; buffer.hasRemaining();) {
            int read = at < 0 ? -1 : channel.read(buffer, at);
            if (read < 0) {
                throw new EOFException("the ring's file has no " + bytes + " bytes at " + place);
            }
            at += read;
        }
    }

    /**
     * Creates a ring in a file of zeros. The file's memory must already be allocated. Otherwise an access could kill
     * the process with a SIGBUS when memory is exhausted. {@link #close} closes the file's channel.
     *
     * @param first position of the first byte, which may have any value that is a multiple of the alignment
     */
    public static RingMemory create(SharedFile file, int capacity, long first) throws IOException {
        RingMemory ring = map(file.channel(), RingLayout.fileBytes(capacity));
        RingLayout.initialize(ring, capacity, first);
        return ring;
    }

    /**
     * Maps a ring that the peer created.
     *
     * @param channel channel of the ring's file, which {@link #close} closes
     * @param name    name of the ring's file, for messages
     * @throws ShmUnavailableException if the ring is not as the peer has described it
     */
    public static RingMemory open(FileChannel channel, FileName name, int capacity) throws IOException {
        long bytes = RingLayout.fileBytes(capacity);
        long length = channel.size();
        if (length != bytes) {
            channel.close();
            throw new ShmUnavailableException(
                    "the ring " + name + " has " + length + " bytes, and the peer said " + bytes);
        }
        RingMemory ring = map(channel, bytes);
        String problem = RingLayout.problem(ring, capacity);
        if (problem != null) {
            ring.close();
            throw new ShmUnavailableException("the peer's ring " + name + " is damaged: " + problem);
        }
        return ring;
    }
}
