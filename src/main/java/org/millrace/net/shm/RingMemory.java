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
 * The mapped bytes of a ring, and the accesses that rings need, named by their ordering. Every access of a memory
 * segment is checked against its length, and against its being mapped: one after {@link #close} throws
 * {@link IllegalStateException}, also if another thread closed it.
 */
final class RingMemory {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final FileChannel channel;
    private final Arena arena;
    final MemorySegment segment;
    /** Where this side appends to the file. */
    private long end;

    private RingMemory(FileChannel channel, Arena arena, MemorySegment segment) {
        this.channel = channel;
        this.arena = arena;
        this.segment = segment;
        end = segment.byteSize();
    }

    /** Takes the channel over, and closes it if there is no mapping. */
    private static RingMemory map(FileChannel channel, long bytes) throws IOException {
        // Shared, so that any thread may close it: the threads that use it then get an exception, and never touch
        // memory that is unmapped.
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
     * Copies from the ring to the caller's memory. It stores words of 8 bytes whole where addresses and length are
     * multiples of 8: {@link MemorySegment#copy} is made of {@code jdk.internal.misc.Unsafe.copyMemory}, which promises
     * "coherent units", and below 64 bytes of accesses of 8.
     */
    void copyOut(long offset, MemorySegment to, long toOffset, long bytes) {
        MemorySegment.copy(segment, offset, to, toOffset, bytes);
    }

    /** Gives the mapping back; may be called again, and by any thread. */
    synchronized void unmap() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }

    /** Closes the file and gives the mapping back; may be called again, and by any thread. */
    public final void close() {
        ConnectionState.closeQuietly(channel);
        unmap();
    }

    /** Copies behind the ring in its file, until that is freed, and behind what was appended before; returns where. */
    final long append(MemorySegment from, long fromOffset, long bytes) throws IOException {
        long place = end;
        ByteBuffer buffer = from.asSlice(fromOffset, bytes).asByteBuffer();
        while (buffer.hasRemaining()) {
            end += channel.write(buffer, end);
        }
        return place;
    }

    /** Copies what the other side appended to the caller's memory. */
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
     * Makes a ring in a file of zeros, all of which are there: memory that is only promised would kill the process,
     * with a SIGBUS, when it is touched and nothing is left to give. The ring's end closes the file's channel.
     *
     * @param first position of the first byte
     */
    public static RingMemory create(SharedFile file, int capacity, long first) throws IOException {
        RingMemory ring = map(file.channel(), RingLayout.fileBytes(capacity));
        RingLayout.initialize(ring, capacity, first);
        return ring;
    }

    /**
     * Maps a ring that the peer made.
     *
     * @param channel of its file, which this takes over
     * @param name    of its file, for messages
     * @throws ShmUnavailableException if it is not as the peer said
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
