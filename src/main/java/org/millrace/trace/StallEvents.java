package org.millrace.trace;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Tells Flight Recorder of connections that stand still with something to do, each once. One thread. */
final class StallEvents {

    private static final long STALL_NANOS = 1_000_000_000;

    /** For each block: when its connection had last changed when its stall was told. */
    private final Map<Long, Long> told = new HashMap<>();

    void look(List<Long> blocks) {
        long now = System.nanoTime();
        for (Long at : blocks) {
            if (TraceMemory.getInt(at + TraceLayout.STATE_OFFSET) == TraceLayout.OPEN
                    && TraceMemory.getInt(at + TraceLayout.TYPE_OFFSET) == TraceLayout.CONNECTION) {
                look(at, now);
            }
        }
    }

    private void look(long at, long now) {
        long taken = TraceMemory.get(at + ConnectionFields.TAKEN_OFFSET);
        long done = TraceMemory.get(at + ConnectionFields.DONE_OFFSET);
        boolean blocked = TraceMemory.get(at + ConnectionFields.BLOCKED_OFFSET) - taken >= 0;
        long last = TraceMemory.get(at + ConnectionFields.LAST_CHANGE_OFFSET);
        Long before = told.get(at);
        if ((taken != done || blocked) && last != 0 && now - last > STALL_NANOS && (before == null || before != last)) {
            told.put(at, last);
            FlightEvents.stall(TraceMemory.text(at + ConnectionFields.NAME_OFFSET, ConnectionFields.NAME_BYTES), taken,
                    done, blocked, now - last);
        }
    }
}
