package org.millrace.trace;

import java.util.Arrays;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.JoinFields;

/**
 * Trace of a join, or of a connection that is being made. The trace ends when the join or the connection is complete or
 * has failed. Safe from any thread.
 */
public final class JoinTrace implements AutoCloseable {

    /** Object for a rank that is not joining. It stores nothing. */
    public static final JoinTrace NONE = new JoinTrace(null, 0, 0, 0);

    /** Trace of the process; null after this object was closed, and always null if this object stores nothing. */
    private @Nullable ProcessTrace process;
    private final int index;
    private final long base;
    private final int words;

    JoinTrace(@Nullable ProcessTrace process, int index, long base, int size) {
        this.process = process;
        this.index = index;
        this.base = base;
        words = Math.min((size + Long.SIZE - 1) / Long.SIZE, TraceLayout.RING_BYTES / Long.BYTES);
    }

    /** Opens the trace of a rank that joins a group at a rendezvous. */
    public static JoinTrace open(int rank, int size, String where) {
        ProcessTrace process = ProcessTrace.current();
        return process == null ? NONE : process.join(0, rank, size, System.nanoTime(), where, "");
    }

    /**
     * Opens the trace of a connection that is not complete yet. After the first call of {@link #activity}, a reader
     * considers the connection as given up when no further calls follow.
     *
     * @param communicator hash of the communicator; 0 if unknown
     * @param rank         rank of this process; -1 if unknown
     * @param since        time at which the connection was begun, by {@link System#nanoTime}
     */
    public static JoinTrace connecting(long communicator, int rank, long since, String description) {
        ProcessTrace process = ProcessTrace.current();
        return process == null ? NONE : process.join(communicator, rank, 0, since, "", description);
    }

    public synchronized void missing(BitSet ranks) {
        if (process != null) {
            long[] bits = Arrays.copyOf(ranks.toLongArray(), words);
            for (int word = 0; word < words; word++) {
                TraceMemory.set(base + TraceLayout.RECORD_BYTES + (long) word * Long.BYTES, bits[word]);
            }
            TraceMemory.set(base + JoinFields.SINCE_OFFSET, System.nanoTime());
        }
    }

    /** Stores the rank's present activity, such as {@code "cannot join: timeout"}, or the connection's description. */
    public synchronized void activity(String predicate) {
        if (process != null) {
            TraceMemory.text(base, JoinFields.ACTIVITY, predicate);
            TraceMemory.set(base + JoinFields.POLLED_OFFSET, System.nanoTime());
        }
    }

    @Override
    public synchronized void close() {
        if (process != null) {
            process.close(index);
            process = null;
        }
    }
}
