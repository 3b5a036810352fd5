package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel.MapMode;
import java.nio.channels.FileChannel;

/**
 * A file's bytes as memory of the global scope, not to be touched after {@link #close}: it is polled, so no access
 * checks an arena, and no close can stop one in its middle.
 */
public final class Mapping implements AutoCloseable {

    private final Arena arena = Arena.ofShared();
    private final MemorySegment segment;

    @SuppressWarnings("restricted") // reinterprets the mapping, within its bounds
    Mapping(FileChannel channel, MapMode mode, long bytes) throws IOException {
        try {
            MemorySegment all =
                    MemorySegment.ofAddress(channel.map(mode, 0, bytes, arena).address()).reinterpret(bytes);
            segment = mode == MapMode.READ_ONLY ? all.asReadOnly() : all;
        } catch (IOException | RuntimeException e) {
            arena.close();
            throw e;
        }
    }

    public MemorySegment segment() {
        return segment;
    }

    boolean isOpen() {
        return arena.scope().isAlive();
    }

    /** May be called twice. */
    @Override
    public synchronized void close() {
        if (isOpen()) {
            arena.close();
        }
    }
}
