package org.millrace.plugin.gin;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.millrace.MillraceException;
import org.millrace.net.shm.file.SharedMemory;

/** What a group maps of memory that it shares with ranks of its host. */
final class GinSharedMemory implements AutoCloseable {

    private final GinDevice hardware;
    private final Path directory;
    private final List<Runnable> releases = new ArrayList<>();

    GinSharedMemory(GinDevice hardware) {
        this.hardware = hardware;
        this.directory = hardware.sharedDirectory();
    }

    /**
     * Memory that the device reaches too.
     *
     * @param memory as Java sees it
     * @param device where the device sees it
     */
    record Pinned(SharedMemory memory, long device) {
    }

    /** A number that only processes have in common which can share memory; 0 for none. */
    long place() {
        try {
            return hardware.sharesMemory() ? SharedMemory.place(directory).hashCode() | 1L << Integer.SIZE : 0;
        } catch (MillraceException none) {
            return 0;
        }
    }

    /** Makes memory of zeros. */
    Pinned create(long bytes) {
        return pin(SharedMemory.create(directory, bytes));
    }

    /** Maps what one peer has made for this rank alone. */
    Pinned open(long[] key, long bytes) {
        return pin(SharedMemory.open(directory, key, bytes));
    }

    /** Maps what a peer has made for several ranks; the device need not reach it. */
    SharedMemory join(long[] key, long bytes) {
        SharedMemory memory = SharedMemory.join(directory, key, bytes);
        releases.add(memory::close);
        return memory;
    }

    private Pinned pin(SharedMemory memory) {
        try {
            GinDevice.Pinned pinned = hardware.pin(memory.segment());
            releases.add(() -> {
                pinned.release().run();
                memory.close();
            });
            return new Pinned(memory, pinned.device());
        } catch (MillraceException e) {
            memory.close();
            throw e;
        }
    }

    /** Unmaps all. The agent has let go of the group, and no copy is under way. */
    @Override
    public void close() {
        releases.forEach(Runnable::run);
        releases.clear();
    }
}
