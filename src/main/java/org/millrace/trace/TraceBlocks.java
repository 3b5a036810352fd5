package org.millrace.trace;

import static org.millrace.trace.TraceLayout.BLOCK_BYTES;
import static org.millrace.trace.TraceLayout.GROWTH;
import static org.millrace.trace.TraceLayout.MOST_BLOCKS;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/**
 * The blocks of a trace's file: which are taken, and by what. One that is closed stays for later readers, and is taken
 * again when {@value #KEPT} others were closed after it. Used under the lock of {@link ProcessTrace}.
 */
final class TraceBlocks {

    private static final Logger LOG = LogManager.getLogger(TraceBlocks.class);
    private static final int KEPT = 64;

    private final TraceFile file;
    private final List<Long> addresses = new ArrayList<>();
    /** The one that was closed first is first. */
    private final Deque<Integer> closed = new ArrayDeque<>();
    private int open;
    private boolean full;

    TraceBlocks(TraceFile file) {
        this.file = file;
    }

    long address(int index) {
        return addresses.get(index);
    }

    /** Addresses of those that were ever taken. */
    List<Long> used() {
        return List.copyOf(addresses.subList(0, count()));
    }

    /** How many are shown and not closed. */
    int open() {
        return open;
    }

    private int count() {
        return TraceMemory.getInt(file.header() + TraceLayout.BLOCKS_OFFSET);
    }

    /** Takes one that is empty but for what all have; returns -1 if there is no room. */
    int take(int type, long communicator, int rank) {
        int index =
                closed.size() > KEPT || addresses.size() == MOST_BLOCKS && !closed.isEmpty() ? closed.poll() : next();
        if (index < 0) {
            return -1;
        }
        long at = address(index);
        long generation = TraceMemory.get(at + TraceLayout.GENERATION_OFFSET) + 1;
        TraceMemory.release(at + TraceLayout.STATE_OFFSET, TraceLayout.UNUSED);
        TraceMemory.clear(at + TraceLayout.COMMUNICATOR_OFFSET, BLOCK_BYTES - TraceLayout.COMMUNICATOR_OFFSET);
        TraceMemory.set(at + TraceLayout.GENERATION_OFFSET, generation);
        TraceMemory.set(at + TraceLayout.TYPE_OFFSET, type);
        TraceMemory.set(at + TraceLayout.COMMUNICATOR_OFFSET, communicator);
        TraceMemory.set(at + TraceLayout.RANK_IN_GROUP_OFFSET, rank);
        TraceMemory.set(at + TraceLayout.OPENED_OFFSET, System.nanoTime());
        return index;
    }

    private int next() {
        int used = count();
        if (used == addresses.size()) {
            if (full || used == MOST_BLOCKS) {
                return -1;
            }
            try {
                long at = file.grow((long) GROWTH * BLOCK_BYTES);
                for (int i = 0; i < GROWTH; i++) {
                    addresses.add(at + (long) i * BLOCK_BYTES);
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

    /** What was taken is described: readers see it from now on. */
    void show(int index) {
        TraceMemory.release(address(index) + TraceLayout.STATE_OFFSET, TraceLayout.OPEN);
        open(open + 1);
    }

    private void open(int now) {
        open = now;
        TraceMemory.set(file.header() + TraceLayout.OPEN_OFFSET, now);
    }

    /** What failed has not, as far as readers see. */
    void reopen(int index) {
        TraceMemory.release(address(index) + TraceLayout.STATE_OFFSET, TraceLayout.OPEN);
    }

    /** Nobody waits any more for what is a communicator's, as far as readers see: some may still be open. */
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

    /** It is over, now or, if it had failed, since then. */
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
