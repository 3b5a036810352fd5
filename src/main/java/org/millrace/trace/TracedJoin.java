package org.millrace.trace;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.JoinFields;

/**
 * A rank that joins a group, or a connection that is being made.
 *
 * @param hash     hash of the connection's communicator; 0 for a group
 * @param state    open while the rank waits
 * @param rank     number of the rank; -1 for a connection whose rank is unknown
 * @param since    time when a rank last joined, or when this attempt began, in nanoseconds of the host's clock
 * @param polled   time of a connection's last poll, or up to 100 ms earlier; in the future if no poll was stored;
 *                 meaningless for a group
 * @param size     number of ranks of the group; 0 for a connection
 * @param where    rendezvous of the group
 * @param activity present activity of a rank that rank 0 has not admitted, such as {@code "cannot join: timeout"}, or
 *                 description of the connection
 * @param missing  ranks that have not joined, according to this rank; contains this rank until rank 0 has admitted this
 *                 rank
 */
public record TracedJoin(TracedState state, long hash, int rank, int size, long since, long polled, String where,
        String activity, BitSet missing) {

    /** Time without a poll after which a connection counts as given up, in nanoseconds. */
    private static final long ABANDONED_NANOS = 5_000_000_000L;

    /** Returns whether a connection was polled shortly before a time. NCCL stops polling an attempt that it aborts. */
    boolean isPolled(long time) {
        return time - polled < ABANDONED_NANOS;
    }

    TracedJoin withMissing(BitSet ranks) {
        return new TracedJoin(state, hash, ranks.nextSetBit(0), size, since, polled, where, activity, ranks);
    }

    static @Nullable TracedJoin parse(TraceBytes block) {
        TracedState state = TracedState.of(block.intAt(TraceLayout.STATE_OFFSET));
        int rank = block.intAt(TraceLayout.RANK_IN_GROUP_OFFSET);
        int size = block.intAt(JoinFields.SIZE_OFFSET);
        BitSet missing = new BitSet();
        for (int each = 0; each < Math.min(size, TraceLayout.RING_BYTES * Byte.SIZE); each++) {
            long word = block.longAt(TraceLayout.RECORD_BYTES + each / Long.SIZE * Long.BYTES);
            missing.set(each, (word >>> each & 1) != 0);
        }
        return state == null || rank < 0 && size != 0 ? null
                : new TracedJoin(state, block.longAt(TraceLayout.COMMUNICATOR_OFFSET), rank, size,
                        block.longAt(JoinFields.SINCE_OFFSET), block.longAt(JoinFields.POLLED_OFFSET),
                        block.textAt(JoinFields.WHERE), block.textAt(JoinFields.ACTIVITY), missing);
    }
}
