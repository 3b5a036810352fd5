package org.millrace.trace;

import java.util.List;
import org.millrace.trace.ConnectionIdentity.Direction;

/** Whether this process's connections stand still, at a glance: no file is read, and next to nothing is allocated. */
public final class Stillness {

    private Stillness() {}

    /**
     * Whether an open connection has stood still for so long with something posted, or none has moved, or a link is
     * silent.
     */
    public static boolean of(ProcessTrace trace, long nanos) {
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
            if (still && (state == TraceLayout.FAILED || waits(at))) {
                return true;
            }
            moves |= !still;
        }
        return !moves;
    }

    private static boolean waits(long at) {
        long taken = TraceMemory.get(at + ConnectionFields.TAKEN_OFFSET);
        long done = TraceMemory.get(at + ConnectionFields.DONE_OFFSET);
        return taken != done || TraceMemory.get(at + ConnectionFields.BLOCKED_OFFSET) - taken >= 0
                || TraceMemory.getInt(at + ConnectionFields.DIRECTION_OFFSET) == Direction.RECEIVE.ordinal()
                        && done - TraceMemory.get(at + ConnectionFields.CONSUMED_OFFSET) > 0;
    }
}
