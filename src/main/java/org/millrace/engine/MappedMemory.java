package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.millrace.engine.SharedMemoryEnd.CommonMemory;
import org.millrace.net.shm.SharedMemory;

/** Memory that two processes of one host share. One process creates it, and the other maps it. */
record MappedMemory(SharedMemory memory) implements CommonMemory {

    /** Source of memory that no process can truncate: sealed files that have no name in any directory. */
    static final CommonMemory.Source SEALED =
            new CommonMemory.Source(bytes -> new MappedMemory(SharedMemory.createSealed(bytes)),
                    (handle, bytes) -> open(Path.of(""), handle, bytes), true);

    static CommonMemory.Source in(Path directory) {
        return new CommonMemory.Source(bytes -> new MappedMemory(SharedMemory.create(directory, bytes)),
                (handle, bytes) -> open(directory, handle, bytes), false);
    }

    private static CommonMemory open(Path directory, byte[] handle, long bytes) {
        return new MappedMemory(SharedMemory.open(directory, new String(handle, StandardCharsets.UTF_8), bytes));
    }

    @Override
    public MemorySegment segment() {
        return memory.segment();
    }

    @Override
    public byte[] handle() {
        return memory.name().getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public void close() {
        memory.close();
    }
}
