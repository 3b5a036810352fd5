package org.millrace.transport;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.millrace.net.shm.file.SharedMemory;

/**
 * Memory that two processes of one host share.
 *
 * @param memory this process's mapping of it
 */
record FileMemory(SharedMemory memory) implements CommonMemory {

    /** Memory in files of a directory. */
    static Source in(Path directory) {
        return new Source() {
            @Override
            public CommonMemory create(long bytes) {
                return new FileMemory(SharedMemory.create(directory, bytes));
            }

            @Override
            public CommonMemory open(byte[] handle, long bytes) {
                return new FileMemory(SharedMemory.open(directory, new String(handle, StandardCharsets.UTF_8), bytes));
            }
        };
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
