package org.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Memory of a {@link Device} in which operands of the host lie while an operation runs: for those who implement
 * devices, not for programs. To take memory from a GPU and give it back can wait for kernels, so what was given back is
 * kept for the next operation, until the device is closed. From any thread.
 */
public final class StagingMemory implements AutoCloseable {

    private static final long SMALLEST = 64;
    /** Sizes up to here are powers of two, larger ones multiples of it: few sizes, and little that is not used. */
    private static final long LARGE = 1 << 20;

    /** Where the memory comes from. */
    @FunctionalInterface
    public interface Source {

        /**
         * Takes memory.
         *
         * @param bytes more than 0
         * @param arena its lifetime
         * @return that many bytes
         */
        MemorySegment allocate(long bytes, Arena arena);
    }

    private record Block(MemorySegment memory, Arena arena) {
    }

    /** Memory that one operation has, until it closes this: nothing may touch it any more then. */
    public static final class Lease implements AutoCloseable {

        private final StagingMemory owner;
        private final Block block;
        private final MemorySegment memory;
        private final AtomicBoolean closed = new AtomicBoolean();

        private Lease(StagingMemory owner, Block block, long bytes) {
            this.owner = owner;
            this.block = block;
            this.memory = block.memory.asSlice(0, bytes);
        }

        /** {@return the memory: as many bytes as were asked for} */
        public MemorySegment memory() {
            return memory;
        }

        /** Gives it back. Closing twice is allowed. */
        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                owner.give(block);
            }
        }
    }

    private final Source source;
    private final Map<Long, Deque<Block>> idle = new HashMap<>();
    /** All there are: what an operation that failed has taken never comes back. */
    private final List<Block> all = new ArrayList<>();
    private boolean closed;

    /**
     * Nothing yet.
     *
     * @param source where memory comes from
     */
    public StagingMemory(Source source) {
        this.source = source;
    }

    /**
     * Takes memory for an operation.
     *
     * @param bytes how many, 0 or more
     * @return the memory, with whatever was written to it before
     * @throws MillraceException if there is not that much left
     */
    public Lease take(long bytes) {
        long size = size(bytes);
        Block block = idle(size);
        return new Lease(this, block == null ? allocate(size) : block, bytes);
    }

    private static long size(long bytes) {
        if (bytes > LARGE) {
            return Math.multiplyExact(Math.ceilDiv(bytes, LARGE), LARGE);
        }
        return bytes <= SMALLEST ? SMALLEST : Long.highestOneBit(bytes - 1) << 1;
    }

    private synchronized @Nullable Block idle(long size) {
        Deque<Block> same = idle.get(size);
        return same == null ? null : same.pollLast();
    }

    private Block allocate(long size) {
        Arena arena = Arena.ofShared();
        try {
            Block block = new Block(source.allocate(size, arena), arena);
            synchronized (this) {
                if (closed) {
                    throw new MillraceException("the communicator is closed");
                }
                all.add(block);
            }
            return block;
        } catch (RuntimeException | Error failed) {
            arena.close();
            throw failed;
        }
    }

    private synchronized void give(Block block) {
        if (!closed) {
            idle.computeIfAbsent(block.memory.byteSize(), _ -> new ArrayDeque<>()).addLast(block);
        }
    }

    /** Frees all of it, when nothing touches operands any more. Closing twice is allowed. */
    @Override
    public void close() {
        List<Block> last;
        synchronized (this) {
            closed = true;
            last = List.copyOf(all);
            all.clear();
            idle.clear();
        }
        last.forEach(block -> block.arena.close());
    }
}
