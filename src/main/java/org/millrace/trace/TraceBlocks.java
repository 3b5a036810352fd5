package org.millrace.trace;

import java.io.IOException;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/**
 * Allocates the blocks of a trace's file. A closed block stays for later readers, and is reused only after
 * {@value #KEPT} other blocks were closed. Used under the lock of {@link ProcessTrace}.
 */
final class TraceBlocks {

    private static final Logger LOG = LogManager.getLogger(TraceBlocks.class);
    private static final int KEPT = 64;

    private final TraceFile file;
    private final List<Long> addresses = new ArrayList<>();
    /** Closed blocks, in the order of closing. */
    private final Deque<Integer> closed = new ArrayDeque<>();
    private int open;
    private boolean full;

    TraceBlocks(TraceFile file) {
        this.file = file;
    }

    long address(int index) {
        return addresses.get(index);
    }

    /** Returns the addresses of all blocks that were ever taken. */
    List<Long> used() {
        return List.copyOf(addresses.subList(0, count()));
    }

    /** Returns the number of blocks that are visible to readers and not closed. */
    int open() {
        return open;
    }

    private int count() {
        return TraceMemory.getInt(file.header() + TraceLayout.BLOCKS_OFFSET);
    }

    /**
     * Takes a block, sets the fields that all types of blocks have, and clears the other fields. Returns the block's
     * index, or -1 if the file has no room.
     */
    int take(int type, long communicator, int rank) {
        int index =
                closed.size() > KEPT || addresses.size() == TraceLayout.MAX_BLOCKS && !closed.isEmpty() ? closed.poll()
                        : next();
        if (index < 0) {
            return -1;
        }
        long at = address(index);
        long generation = TraceMemory.get(at + TraceLayout.GENERATION_OFFSET) + 1;
        TraceMemory.release(at + TraceLayout.STATE_OFFSET, TraceLayout.UNUSED);
        TraceMemory.set(at + TraceLayout.GENERATION_OFFSET, generation);
        // Orders the store of the generation before the stores of the new content. Pairs with the second reading of the
        // generation in TraceReader, which drops blocks that were taken meanwhile.
        VarHandle.storeStoreFence();
        TraceMemory.clear(at + TraceLayout.COMMUNICATOR_OFFSET,
                TraceLayout.BLOCK_BYTES - TraceLayout.COMMUNICATOR_OFFSET);
        TraceMemory.set(at + TraceLayout.TYPE_OFFSET, type);
        TraceMemory.set(at + TraceLayout.COMMUNICATOR_OFFSET, communicator);
        TraceMemory.set(at + TraceLayout.RANK_IN_GROUP_OFFSET, rank);
        TraceMemory.set(at + TraceLayout.OPENED_OFFSET, System.nanoTime());
        return index;
    }

    private int next() {
        int used = count();
        if (used == addresses.size()) {
            if (full || used == TraceLayout.MAX_BLOCKS) {
                return -1;
            }
            try {
                long at = file.grow((long) TraceLayout.GROWTH * TraceLayout.BLOCK_BYTES);
                for (int i = 0; i < TraceLayout.GROWTH; i++) {
                    addresses.add(at + (long) i * TraceLayout.BLOCK_BYTES);
                }
            } catch (IOException e) {
                full = true;
                LOG.info("{} has no room for more connections: {}", file.path(), e.toString());
                return -1;
            }
        }
        TraceMemory.release(file.header() + TraceLayout.BLOCKS_OFFSET, used + 1);
        return used;
    }

    /** Makes a block visible to readers, after its description was written. */
    void show(int index) {
        TraceMemory.release(address(index) + TraceLayout.STATE_OFFSET, TraceLayout.OPEN);
        open(open + 1);
    }

    private void open(int now) {
        open = now;
        TraceMemory.set(file.header() + TraceLayout.OPEN_OFFSET, now);
    }

    /** Marks a failed block as open again, so that readers do not see a failure. */
    void reopen(int index) {
        TraceMemory.release(address(index) + TraceLayout.STATE_OFFSET, TraceLayout.OPEN);
    }

    /**
     * Marks a communicator's blocks as closed for readers, because no rank waits for the communicator any longer.
     * Threads may still write to some of these blocks.
     */
    void settle(long communicator) {
        for (long at : used()) {
            if (TraceMemory.get(at + TraceLayout.COMMUNICATOR_OFFSET) == communicator) {
                if (TraceMemory.getInt(at + TraceLayout.STATE_OFFSET) == TraceLayout.FAILED) {
                    TraceMemory.release(at + TraceLayout.STATE_OFFSET, TraceLayout.CLOSED);
                }
                end(at, TraceLayout.CLOSED);
            }
        }
    }

    /**
     * Closes a block. The closing time is the current time, or the time of the failure if the block had failed.
     */
    void close(int index) {
        end(address(index), TraceLayout.CLOSED);
        closed.add(index);
        open(open - 1);
    }

    void fail(int index) {
        end(address(index), TraceLayout.FAILED);
    }

    private static void end(long at, int state) {
        if (TraceMemory.getInt(at + TraceLayout.STATE_OFFSET) == TraceLayout.OPEN) {
            TraceMemory.set(at + TraceLayout.CLOSED_OFFSET, System.nanoTime());
            TraceMemory.release(at + TraceLayout.STATE_OFFSET, state);
        }
    }
}
