package org.millrace.net.shm;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.channels.FileChannel.MapMode;
import java.nio.channels.FileChannel;
import org.millrace.file.FileName;

/**
 * The mapped bytes of a ring. The names of the access methods state their ordering. Each access checks the length of
 * the memory segment, and that the segment is still mapped. After any thread has called {@link #close}, an access
 * throws an {@link IllegalStateException}.
 */
final class RingMemory {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final Arena arena;
    final MemorySegment segment;
    /** Offset of the file's space for moved payloads, see {@link RingLayout}. */
    private final long movedOffset;
    /** Offset in the file at which {@link #append} stores the next payload. */
    private long end;

    private RingMemory(Arena arena, MemorySegment segment, long movedOffset) {
        this.arena = arena;
        this.segment = segment;
        this.movedOffset = movedOffset;
        end = movedOffset;
    }

    /** Maps a ring's file and closes the channel, so that a connection holds no descriptor of the file. */
    private static RingMemory map(FileChannel channel, int capacity) throws IOException {
        // A shared arena, so that any thread may close it. A thread that uses the memory at that time gets an
        // exception, and cannot access unmapped memory.
        Arena arena = Arena.ofShared();
        try (channel) {
            return new RingMemory(arena, channel.map(MapMode.READ_WRITE, 0, RingLayout.fileBytes(capacity), arena),
                    RingLayout.movedOffset(capacity));
        } catch (IOException | RuntimeException e) {
            arena.close();
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
     * multiples of 8. {@link MemorySegment#copy} guarantees this, because it uses {@code
     * jdk.internal.misc.Unsafe.copyMemory}, which copies in "coherent units". Below 64 bytes {@code copy} itself uses
     * accesses of 8 bytes.
     */
    void copyOut(long offset, MemorySegment to, long toOffset, long bytes) {
        MemorySegment.copy(segment, offset, to, toOffset, bytes);
    }

    /** Unmaps the ring. May be called repeatedly, and by any thread. */
    synchronized void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }

    /**
     * Copies a payload to the file's space for moved payloads, behind the payloads that were copied before. The
     * operating system allocates memory only for the used part of this space. This memory is freed when both processes
     * have released their mappings.
     *
     * @return offset of the copied payload in the file
     * @throws IOException if the space for moved payloads is full, or no memory is left
     */
    long append(MemorySegment from, long fromOffset, long bytes) throws IOException {
        if (bytes > segment.byteSize() - end) {
            throw new IOException(segment.byteSize() - movedOffset + " bytes behind the ring are used");
        }
        try {
            MemorySegment.copy(from, fromOffset, segment, end, bytes);
        } catch (InternalError noMemory) {
            // InternalError is the JVM's error for a SIGBUS: no memory is left for the file
            throw new IOException(bytes + " bytes behind the ring cannot be allocated", noMemory);
        }
        long place = end;
        end += bytes;
        return place;
    }

    /**
     * Lets later payloads overwrite the payloads that were appended before. Requires that the consumer has read all
     * appended payloads.
     */
    void reuseAppended() {
        end = movedOffset;
    }

    /** Copies bytes from the file's space for moved payloads to the caller's memory. */
    void readAppended(long place, MemorySegment to, long toOffset, long bytes) throws IOException {
        if (place < movedOffset || bytes > segment.byteSize() - place) {
            throw new EOFException("the ring's file has no " + bytes + " bytes at " + place);
        }
        MemorySegment.copy(segment, place, to, toOffset, bytes);
    }

    /**
     * Creates a ring in a file of zeros, and closes the file's channel. The memory of the ring must already be
     * allocated. Otherwise an access could kill the process with a SIGBUS when memory is exhausted.
     *
     * @param first position of the first byte, which may have any value that is a multiple of the alignment
     */
    public static RingMemory create(SharedFile file, int capacity, long first) throws IOException {
        RingMemory ring = map(file.channel(), capacity);
        RingLayout.initialize(ring, capacity, first);
        return ring;
    }

    /**
     * Maps a ring that the peer created.
     *
     * @param channel channel of the ring's file; this method closes the channel
     * @param name    name of the ring's file, for messages
     * @throws ShmUnavailableException if the ring is not as the peer has described it
     */
    public static RingMemory open(FileChannel channel, FileName name, int capacity) throws IOException {
        long bytes = RingLayout.fileBytes(capacity);
        long length = channel.size();
        if (length != bytes) {
            channel.close();
            throw new ShmUnavailableException(
                    "the ring " + name + " has " + length + " bytes, but the peer announced " + bytes);
        }
        RingMemory ring = map(channel, capacity);
        String problem = RingLayout.problem(ring, capacity);
        if (problem != null) {
            ring.close();
            throw new ShmUnavailableException("the peer's ring " + name + " is damaged: " + problem);
        }
        return ring;
    }
}
