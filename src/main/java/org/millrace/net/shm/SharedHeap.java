package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel.MapMode;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.file.FileName;

/**
 * Memory that a process allocates in parts, and that other processes map as a whole. They read there the data that its
 * owner refers to, at any position. It resembles CUDA memory opened by a handle ({@code cudaIpcMemHandle_t}). Its
 * length is the size of the machine's memory; only allocated parts occupy memory.
 */
public final class SharedHeap implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(SharedHeap.class);
    private static final long PAGE = 4096;

    private final SealedFile file;
    private final SharedMemory.Mapping mapping;
    /** Sizes of the free parts by their offsets; neighboring parts are merged. */
    private final TreeMap<Long, Long> free = new TreeMap<>();
    /** Number of allocated parts. */
    private int parts;
    /** Number of users that may still allocate from it, or open it. */
    private int users = 1;
    private final Doorbell doorbell;

    private SharedHeap(long bytes) throws IOException {
        file = SealedFile.createSparse(bytes);
        SharedMemory.Mapping mapped = null;
        try (FileChannel channel = file.channel()) {
            mapped = new SharedMemory.Mapping(channel, MapMode.READ_WRITE, bytes);
            file.take(0, PAGE);
            // Mapped once more, for as long as the doorbell is reachable: a thread may ring it after the heap's end.
            doorbell = new Doorbell(channel.map(MapMode.READ_WRITE, 0, Integer.BYTES, Arena.ofAuto()));
        } catch (IOException | RuntimeException e) {
            if (mapped != null) {
                mapped.close();
            }
            file.close();
            throw e;
        }
        mapping = mapped;
        free.put(PAGE, bytes - PAGE);
    }

    /** Creates an empty heap. Throws {@link ShmUnavailableException} without such memory. */
    public static SharedHeap create() {
        try {
            return create(machineBytes() / PAGE * PAGE);
        } catch (IOException e) {
            throw new ShmUnavailableException("no memory that other processes could map: " + e.getMessage(), e);
        }
    }

    static SharedHeap create(long bytes) {
        try {
            return new SharedHeap(bytes);
        } catch (IOException | RuntimeException e) {
            throw new ShmUnavailableException("no memory that other processes could map: " + e.getMessage(), e);
        }
    }

    private static long machineBytes() throws IOException {
        try (var lines = Files.lines(Path.of("/proc/meminfo"))) {
            return lines.filter(line -> line.startsWith("MemTotal:"))
                    .map(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
                    .findFirst()
                    .orElseThrow(() -> new IOException("/proc/meminfo says no MemTotal"));
        }
    }

    /** Returns the name that another process needs to {@link #open} it. */
    public String name() {
        return file.name().toString();
    }

    /** Returns the doorbell of the owner's rank, which also wakes the ranks that this rank must wake. */
    public Doorbell doorbell() {
        return doorbell;
    }

    /** Returns the whole heap, in the global scope. */
    public MemorySegment segment() {
        return mapping.segment();
    }

    /** Allocates zeros that begin at a page boundary, until the arena is closed; null without room. */
    @SuppressWarnings("restricted") // within the heap
    public @Nullable MemorySegment allocate(long bytes, Arena owner) {
        long whole = (Math.max(bytes, 1) + PAGE - 1) / PAGE * PAGE;
        Long offset = take(whole);
        if (offset == null) {
            return null;
        }
        try {
            return MemorySegment.ofAddress(mapping.segment().address() + offset)
                    .reinterpret(bytes, owner, _ -> giveBack(offset, whole));
        } catch (RuntimeException e) { // the arena is closed, or belongs to another thread
            giveBack(offset, whole);
            throw e;
        }
    }

    private synchronized @Nullable Long take(long bytes) {
        if (users == 0) {
            return null;
        }
        for (Map.Entry<Long, Long> part : free.entrySet()) {
            long offset = part.getKey();
            long size = part.getValue();
            if (size >= bytes) {
                try {
                    file.take(offset, bytes);
                } catch (IOException e) {
                    LOG.debug("{} bytes are not taken of the memory that other processes map", bytes, e);
                    return null;
                }
                free.remove(offset);
                if (size > bytes) {
                    free.put(offset + bytes, size - bytes);
                }
                parts++;
                return offset;
            }
        }
        return null;
    }

    private synchronized void giveBack(long offset, long bytes) {
        try {
            file.giveBack(offset, bytes);
        } catch (IOException e) {
            LOG.debug("{} bytes stay taken", bytes, e);
            mapping.segment().asSlice(offset, bytes).fill((byte) 0);
        }
        long begin = offset;
        long end = offset + bytes;
        Map.Entry<Long, Long> before = free.lowerEntry(offset);
        if (before != null && before.getKey() + before.getValue() == offset) {
            begin = before.getKey();
        }
        Long behind = free.remove(end);
        free.put(begin, (behind == null ? end : end + behind) - begin);
        parts--;
        unmapIfUnused();
    }

    /** Returns the number of unallocated bytes. */
    synchronized long freeBytes() {
        return free.values().stream().mapToLong(Long::longValue).sum();
    }

    /** Adds a user, which closes it, too. */
    public synchronized SharedHeap share() {
        users++;
        return this;
    }

    /** Removes a user. After the last one, the heap cannot be opened. Its memory stays until its parts are released. */
    @Override
    public synchronized void close() {
        users--;
        unmapIfUnused();
    }

    private void unmapIfUnused() {
        if (users == 0 && parts == 0 && mapping.isOpen()) {
            doorbell.close();
            mapping.close();
            file.close();
        }
    }

    /**
     * Maps another process's heap, for reading. The memory outlives that process.
     *
     * @param name result of its {@link #name}, bytes of another process
     * @throws ShmUnavailableException if it does not exist
     */
    public static SharedMemory.Mapping open(String name) {
        return open(name, MapMode.READ_ONLY, Long.MAX_VALUE);
    }

    /** Maps the page before all allocated parts, for writing. */
    static SharedMemory.Mapping openFirstPage(String name) {
        return open(name, MapMode.READ_WRITE, PAGE);
    }

    private static SharedMemory.Mapping open(String name, MapMode mode, long most) {
        FileName parsed = FileName.parse(name);
        if (parsed == null || !parsed.isSealed()) {
            throw new ShmUnavailableException("\"" + name + "\" is no name of memory of ours");
        }
        try (FileChannel channel = SealedFile.open(parsed, SealedFile.ALL)) {
            return new SharedMemory.Mapping(channel, mode, Math.min(channel.size(), most));
        } catch (IOException e) {
            throw new ShmUnavailableException("cannot map the memory of " + parsed.owner() + ": " + e.getMessage()
                    + "; NCCL_P2P_DISABLE=1 and NCCL_SHM_DISABLE=1 do without", e);
        }
    }
}
