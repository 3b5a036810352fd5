package org.millrace.trace;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.GinFields.Kind;
import org.millrace.trace.TraceLayout.GinFields;

/**
 * A GIN context, as found in the trace of its process.
 *
 * @param queueSize number of descriptors of each queue
 * @param queues    queues of the first peers, at most {@link GinFields#QUEUES}
 */
public record TracedGin(long communicator, int rank, int peers, int context, int queueSize, String name,
        TracedState state, Map<Kind, Long> descriptors, List<Queue> queues) {

    public record Queue(int peer, long taken, long completed, long lastChange) {
    }

    static @Nullable TracedGin parse(TraceBytes block) {
        TracedState state = TracedState.of(block.intAt(TraceLayout.STATE_OFFSET));
        if (state == null) {
            return null;
        }
        Map<Kind, Long> descriptors = new EnumMap<>(Kind.class);
        for (Kind kind : Kind.values()) {
            descriptors.put(kind, block.countAt(GinFields.KINDS_OFFSET + kind.ordinal() * Long.BYTES));
        }
        int peers = Math.max(0, block.intAt(GinFields.PEERS_OFFSET));
        List<Queue> queues = new ArrayList<>();
        for (int peer = 0; peer < Math.min(peers, GinFields.QUEUES); peer++) {
            int at = TraceLayout.RECORD_BYTES + peer * GinFields.QUEUE_BYTES;
            queues.add(new Queue(peer, block.countAt(at + GinFields.QUEUE_TAKEN_OFFSET),
                    block.countAt(at + GinFields.QUEUE_COMPLETED_OFFSET),
                    block.longAt(at + GinFields.QUEUE_LAST_CHANGE_OFFSET)));
        }
        return new TracedGin(block.longAt(TraceLayout.COMMUNICATOR_OFFSET),
                block.intAt(TraceLayout.RANK_IN_GROUP_OFFSET), peers, block.intAt(GinFields.CONTEXT_OFFSET),
                block.intAt(GinFields.QUEUE_SIZE_OFFSET), block.textAt(GinFields.NAME), state, Map.copyOf(descriptors),
                List.copyOf(queues));
    }
}
