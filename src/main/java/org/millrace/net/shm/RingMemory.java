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
 * The mapped bytes of a ring, with the accesses that rings need, named by their ordering. Each access of a memory
 * segment checks the segment's length, and that it is mapped. An access after {@link #close} throws
 * {@link IllegalStateException}, also if another thread closed it.
 */
final class RingMemory {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final FileChannel channel;
    private final Arena arena;
    final MemorySegment segment;
    /** Position in the file at which this side appends. */
    private long end;

    private RingMemory(FileChannel channel, Arena arena, MemorySegment segment) {
        this.channel = channel;
        this.arena = arena;
        this.segment = segment;
        end = segment.byteSize();
    }

    /** Takes ownership of the channel, and closes it if it cannot be mapped. */
    private static RingMemory map(FileChannel channel, long bytes) throws IOException {
        // Shared, so that any thread may close it. Threads that use it then get an exception, and never access unmapped
        // memory.
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
     * Copies from the ring to the caller's memory. It stores whole 8-byte words if addresses and length are multiples
     * of 8. {@link MemorySegment#copy} uses {@code jdk.internal.misc.Unsafe.copyMemory}, which guarantees "coherent
     * units". Below 64 bytes it uses accesses of 8 bytes instead.
     */
    void copyOut(long offset, MemorySegment to, long toOffset, long bytes) {
        MemorySegment.copy(segment, offset, to, toOffset, bytes);
    }

    /** Releases the mapping. May be called repeatedly, and by any thread. */
    synchronized void unmap() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }

    /** Closes the file and releases the mapping. May be called repeatedly, and by any thread. */
    public final void close() {
        ConnectionState.closeQuietly(channel);
        unmap();
    }

    /**
     * Copies bytes to the ring's file, behind the ring or behind the bytes appended before. They stay until the file is
     * freed. Returns their position.
     */
    final long append(MemorySegment from, long fromOffset, long bytes) throws IOException {
        long place = end;
        ByteBuffer buffer = from.asSlice(fromOffset, bytes).asByteBuffer();
        while (buffer.hasRemaining()) {
            end += channel.write(buffer, end);
        }
        return place;
    }

    /** Copies bytes that the other side appended to the caller's memory. */
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
     * Creates a ring in a file of zeros with allocated memory. Without allocation, an access would kill the process
     * with a SIGBUS if the memory is exhausted. Closing the ring closes the file's channel.
     *
     * @param first position of the first byte
     */
    public static RingMemory create(SharedFile file, int capacity, long first) throws IOException {
        RingMemory ring = map(file.channel(), RingLayout.fileBytes(capacity));
        RingLayout.initialize(ring, capacity, first);
        return ring;
    }

    /**
     * Maps a ring that the peer created.
     *
     * @param channel channel of its file; passes to the ring
     * @param name    name of its file, for messages
     * @throws ShmUnavailableException if it differs from the peer's description
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
