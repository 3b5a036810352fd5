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
 * Memory that one process, the owner, allocates in parts, and that other processes map as a whole. These processes can
 * then read data at every offset that the owner sends to them. The heap resembles CUDA memory that is opened by a
 * handle ({@code cudaIpcMemHandle_t}). The length of the heap equals the size of the machine's memory, but only the
 * heap's allocated parts occupy memory.
 */
public final class SharedHeap implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(SharedHeap.class);
    private static final long PAGE = 4096;

    private final SealedFile file;
    private final SharedMemory.Mapping mapping;
    /** Sizes of the free parts by offset. Neighboring free parts are merged. */
    private final TreeMap<Long, Long> free = new TreeMap<>();
    private int parts;
    /** Number of users that have not closed the heap. Parts can be allocated while this number is not 0. */
    private int users = 1;
    private final Doorbell doorbell;

    private SharedHeap(long bytes) throws IOException {
        file = SealedFile.create(0, bytes, SealedFile.ALL);
        SharedMemory.Mapping mapped = null;
        try (FileChannel channel = file.channel()) {
            mapped = new SharedMemory.Mapping(channel, MapMode.READ_WRITE, bytes);
            file.take(0, PAGE);
            // The doorbell has its own mapping, which exists as long as the doorbell object is reachable. A thread may
            // therefore ring the doorbell after the heap was unmapped.
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

    /** Creates an empty heap. Throws {@link ShmUnavailableException} if this is not possible. */
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
                    .orElseThrow(() -> new IOException("/proc/meminfo has no MemTotal"));
        }
    }

    /** Returns the name that another process needs to {@link #open} the heap. */
    public String name() {
        return file.name().toString();
    }

    /**
     * Returns the doorbell of the rank that owns the heap. The rank sleeps on this doorbell, and wakes other ranks by
     * {@link Doorbell#wakePeers}.
     */
    public Doorbell doorbell() {
        return doorbell;
    }

    /** Returns the whole heap as a segment of the global scope. */
    public MemorySegment segment() {
        return mapping.segment();
    }

    /**
     * Allocates a part of the heap. The part begins at a page boundary and contains zeros. The part is freed when the
     * arena is closed. Returns null if not enough memory is free.
     */
    @SuppressWarnings("restricted") // the new segment lies inside the heap
    public @Nullable MemorySegment allocate(long bytes, Arena owner) {
        long whole = (Math.max(bytes, 1) + PAGE - 1) / PAGE * PAGE;
        Long offset = take(whole);
        if (offset == null) {
            return null;
        }
        try {
            return MemorySegment.ofAddress(mapping.segment().address() + offset)
                    .reinterpret(bytes, owner, _ -> giveBack(offset, whole));
        } catch (RuntimeException e) {
            // The arena is closed, or belongs to another thread.
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
                    LOG.debug("{} bytes are not allocated from the memory that other processes map", bytes, e);
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
            LOG.debug("{} bytes stay allocated", bytes, e);
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

    /** Adds a user. Each user calls {@link #close}. */
    public synchronized SharedHeap share() {
        users++;
        return this;
    }

    /**
     * Removes a user. When no users and no allocated parts remain, the heap is unmapped, and other processes can no
     * longer open it.
     */
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
     * Maps a heap of another process, for reading. The mapping stays valid when that process ends.
     *
     * @param name name of the heap, as {@link #name} returned it in the other process
     * @throws ShmUnavailableException if the heap does not exist
     */
    public static SharedMemory.Mapping open(String name) {
        return open(name, MapMode.READ_ONLY, Long.MAX_VALUE);
    }

    /** Maps the first page of a heap for writing. This page contains the doorbell. */
    static SharedMemory.Mapping openFirstPage(String name) {
        return open(name, MapMode.READ_WRITE, PAGE);
    }

    private static SharedMemory.Mapping open(String name, MapMode mode, long most) {
        FileName parsed = FileName.parse(name);
        if (parsed == null || !parsed.isSealed()) {
            throw new ShmUnavailableException("\"" + name + "\" is not a name of Millrace's shared memory");
        }
        try (FileChannel channel = SealedFile.open(parsed)) {
            return new SharedMemory.Mapping(channel, mode, Math.min(channel.size(), most));
        } catch (IOException e) {
            throw new ShmUnavailableException("cannot map the memory of " + parsed.owner() + ": " + e.getMessage()
                    + "; NCCL_P2P_DISABLE=1 and NCCL_SHM_DISABLE=1 do without", e);
        }
    }
}
