package org.millrace.plugin.gin;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.net.shm.SharedMemory;

/** Memory that this rank of a group shares with the group's other ranks on this host. */
final class GinSharedMemory implements AutoCloseable {

    private final GinDevice device;
    private final GinExchange exchange;
    private final Path directory;
    private final List<Runnable> releases = new ArrayList<>();
    /**
     * Whether all ranks of this host can access sealed memory, which cannot be truncated. Set by {@link #near}.
     */
    private boolean sealed;

    GinSharedMemory(GinDevice device, GinExchange exchange) {
        this.device = device;
        this.exchange = exchange;
        this.directory = device.sharedDirectory();
    }

    /** Shared memory that the device can access. */
    record Pinned(SharedMemory memory, long device) {

    }

    /** Returns for each rank whether it can share memory with this rank. Every rank calls this method. */
    boolean[] near() {
        int ranks = exchange.ranks;
        long place = place();
        long[][] words = new long[ranks][GinExchange.WORDS];
        for (long[] each : words) {
            each[0] = place;
            each[1] = place == 0 ? 0 : SharedMemory.sealedDomain();
        }
        long[][] places = exchange.exchange(words);
        boolean[] near = new boolean[ranks];
        sealed = place != 0 && SharedMemory.sealedDomain() != 0;
        for (int peer = 0; peer < ranks; peer++) {
            near[peer] = peer != exchange.rank && place != 0 && places[peer][0] == place;
            sealed &= !near[peer] || places[peer][1] == SharedMemory.sealedDomain();
        }
        return near;
    }

    /**
     * Sends each peer the key and the size of the memory that this rank created for the peer. Every rank calls this
     * method.
     *
     * @return for each peer, the key of the memory that the peer created for this rank, followed by the size in bytes;
     *         zeros if the peer created no memory
     */
    long[][] exchange(@Nullable Pinned[] made) {
        long[][] words = new long[made.length][GinExchange.WORDS];
        for (int peer = 0; peer < made.length; peer++) {
            if (made[peer] != null) {
                System.arraycopy(made[peer].memory().key(), 0, words[peer], 0, SharedMemory.KEY_WORDS);
                words[peer][SharedMemory.KEY_WORDS] = made[peer].memory().segment().byteSize();
            }
        }
        return exchange.exchange(words);
    }

    /** Returns a number that is equal in processes that can share memory; 0 if this process shares no memory. */
    private long place() {
        try {
            return device.sharesMemory() ? SharedMemory.place(directory).hashCode() | 1L << Integer.SIZE : 0;
        } catch (MillraceException none) {
            return 0;
        }
    }

    /** Creates zeroed memory. */
    Pinned create(long bytes) {
        return pin(sealed ? SharedMemory.createSealed(bytes) : SharedMemory.create(directory, bytes));
    }

    /** Maps memory that a peer has created for this rank alone, and lets the device access it. */
    Pinned open(long[] key, long bytes) {
        return pin(SharedMemory.open(directory, key, bytes));
    }

    /** Maps memory that a peer has created for several ranks. Does not make it accessible to the device. */
    SharedMemory join(long[] key, long bytes) {
        SharedMemory memory = SharedMemory.join(directory, key, bytes);
        releases.add(memory::close);
        return memory;
    }

    private Pinned pin(SharedMemory memory) {
        try {
            GinDevice.Pinned pinned = device.pin(memory.segment());
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

    /** Unmaps all memory. Requires that the agent has released the group and that no copy is in flight. */
    @Override
    public void close() {
        releases.forEach(Runnable::run);
        releases.clear();
    }
}
