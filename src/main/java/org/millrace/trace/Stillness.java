package org.millrace.trace;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.millrace.trace.ConnectionIdentity.Direction;

/** Which of this process's connections stand still, at a glance: no file is read, and next to nothing is allocated. */
final class Stillness {

    private static final long STALL_NANOS = 1_000_000_000;

    /** For each block: when its connection had last changed when Flight Recorder was told of its stall. */
    private final Map<Long, Long> told = new HashMap<>();

    Stillness() {}

    /**
     * Whether an open connection has stood still for so long with something posted, or none has moved, or a link is
     * silent.
     */
    static boolean of(ProcessTrace trace, long nanos) {
        long now = System.nanoTime();
        boolean moves = false;
        List<Long> blocks = trace.blocks();
        for (int i = 0; i < blocks.size(); i++) {
            long at = blocks.get(i);
            int state = TraceMemory.getInt(at + TraceLayout.STATE_OFFSET);
            int type = TraceMemory.getInt(at + TraceLayout.TYPE_OFFSET);
            if (type == TraceLayout.SILENCE && state == TraceLayout.OPEN) {
                return true;
            }
            if (type != TraceLayout.CONNECTION || state != TraceLayout.OPEN && state != TraceLayout.FAILED) {
                continue;
            }
            boolean still = now - TraceMemory.get(at + ConnectionFields.LAST_CHANGE_OFFSET) >= nanos;
            if (still && (state == TraceLayout.FAILED || isPosted(at) || isUnconsumed(at))) {
                return true;
            }
            moves |= !still;
        }
        return !moves;
    }

    private static boolean isPosted(long at) {
        long taken = TraceMemory.get(at + ConnectionFields.TAKEN_OFFSET);
        return taken != TraceMemory.get(at + ConnectionFields.DONE_OFFSET)
                || TraceMemory.get(at + ConnectionFields.BLOCKED_OFFSET) - taken >= 0;
    }

    private static boolean isUnconsumed(long at) {
        return TraceMemory.getInt(at + ConnectionFields.DIRECTION_OFFSET) == Direction.RECEIVE.ordinal()
                && TraceMemory.get(at + ConnectionFields.DONE_OFFSET)
                        - TraceMemory.get(at + ConnectionFields.CONSUMED_OFFSET) > 0;
    }

    /** Tells Flight Recorder of connections that have stood still for a second with something posted, each once. */
    void tellFlightRecorder(List<Long> blocks) {
        long now = System.nanoTime();
        for (Long at : blocks) {
            long last = TraceMemory.get(at + ConnectionFields.LAST_CHANGE_OFFSET);
            if (TraceMemory.getInt(at + TraceLayout.STATE_OFFSET) == TraceLayout.OPEN
                    && TraceMemory.getInt(at + TraceLayout.TYPE_OFFSET) == TraceLayout.CONNECTION && last != 0
                    && now - last > STALL_NANOS && isPosted(at) && !Long.valueOf(last).equals(told.put(at, last))) {
                FlightEvents.stall(at, now - last);
            }
        }
    }
}
