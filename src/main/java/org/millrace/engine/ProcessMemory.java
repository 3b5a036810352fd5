package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.engine.SharedMemoryEnd.CommonMemory;
import org.millrace.net.ConnectionException;

/**
 * Memory that two ranks of this process share. It is freed when both have let go of it: a rank that aborts must not
 * take it from under the other's device.
 */
final class ProcessMemory implements CommonMemory {

    /** This process, or what of it knows this class: two class loaders do not find each other's memory. */
    static final String PROCESS = UUID.randomUUID().toString();

    /** Made, and not yet reached by the other end. */
    private static final ConcurrentMap<Long, Block> OFFERED = new ConcurrentHashMap<>();
    private static final AtomicLong NUMBERS = new AtomicLong();
    private static final AtomicInteger BLOCKS = new AtomicInteger();
    private static final long PAGE = 4096;

    private record Block(long number, Arena arena, MemorySegment segment, AtomicInteger users,
            @Nullable MemorySegment[] pointed) {

        void release() {
            if (users.decrementAndGet() == 0) {
                arena.close();
                BLOCKS.decrementAndGet();
            }
        }
    }

    private final Block block;
    private final AtomicBoolean closed = new AtomicBoolean();

    private ProcessMemory(Block block) {
        this.block = block;
    }

    static CommonMemory create(long bytes) {
        Arena arena = Arena.ofShared();
        try {
            Block block =
                    new Block(NUMBERS.incrementAndGet(), arena, ConnectionInfo.unscoped(arena.allocate(bytes, PAGE)),
                            new AtomicInteger(2), new MemorySegment[ConnectionLayout.SLOTS]);
            OFFERED.put(block.number(), block);
            BLOCKS.incrementAndGet();
            return new ProcessMemory(block);
        } catch (OutOfMemoryError e) {
            arena.close();
            throw new MillraceException("no memory for a connection of " + bytes + " bytes: " + e.getMessage()
                    + "; choose a smaller NCCL_BUFFSIZE", e);
        }
    }

    static CommonMemory open(byte[] handle, long bytes) {
        Block block = handle.length == Long.BYTES ? OFFERED.remove(ByteBuffer.wrap(handle).getLong()) : null;
        if (block == null || block.segment().byteSize() != bytes) {
            throw new ConnectionException(
                    "the other rank's memory is not there, or has another size: was its connection closed?");
        }
        return new ProcessMemory(block);
    }

    /** How many are not freed yet. */
    static int blocks() {
        return BLOCKS.get();
    }

    @Override
    public MemorySegment segment() {
        return block.segment();
    }

    @Override
    public @Nullable MemorySegment[] pointed() {
        return block.pointed();
    }

    @Override
    public byte[] handle() {
        return ByteBuffer.allocate(Long.BYTES).putLong(block.number()).array();
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            if (OFFERED.remove(block.number(), block)) {
                block.release(); // in the place of the other end, which never came
            }
            block.release();
        }
    }
}
