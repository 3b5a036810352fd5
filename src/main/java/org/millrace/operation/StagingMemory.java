package org.millrace.operation;

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
 * Memory of a {@code Device} that holds copies of host operands while an operation runs. Unused memory is kept for
 * later operations until the device is closed, because the allocation and the release of GPU memory can wait for
 * kernels. Safe from any thread.
 */
public final class StagingMemory implements AutoCloseable {

    private static final long SMALLEST = 64;
    /**
     * Limit for the rounding of sizes, in bytes. Sizes below the limit are rounded up to powers of two, and larger
     * sizes to multiples of the limit. The pool then has few distinct sizes and wastes little memory.
     */
    private static final long LARGE = 1 << 20;

    /** Allocator of the device memory. */
    @FunctionalInterface
    public interface Source {

        /**
         * Allocates device memory.
         *
         * @param bytes size in bytes, more than 0
         * @param arena lifetime of the memory
         * @return memory of that size
         */
        MemorySegment allocate(long bytes, Arena arena);
    }

    private record Block(MemorySegment memory, Arena arena) {
    }

    /** Memory that one operation uses. The operation closes the lease when no thread accesses the memory any longer. */
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

        /** {@return the memory, with the requested size} */
        public MemorySegment memory() {
            return memory;
        }

        /** Returns the memory to the pool. Closing twice is allowed. */
        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                owner.give(block);
            }
        }
    }

    private final Source source;
    private final Map<Long, Deque<Block>> idle = new HashMap<>();
    /** All allocated blocks. The block of a failed operation stays in this list and is never reused. */
    private final List<Block> all = new ArrayList<>();
    private boolean closed;

    /** @param source allocator of the device memory */
    public StagingMemory(Source source) {
        this.source = source;
    }

    /**
     * Takes memory for an operation.
     *
     * @param bytes size in bytes, 0 or more
     * @return the memory, with unspecified content
     * @throws IllegalStateException if this pool is closed
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
                    throw new IllegalStateException("the communicator is closed");
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

    /** Frees all memory. No thread may access operands at this time or later. Closing twice is allowed. */
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
