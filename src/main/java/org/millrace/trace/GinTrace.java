package org.millrace.trace;

import static org.millrace.trace.GinFields.QUEUE_BYTES;

/** What the kernels of a GIN context asked for. Used by the thread of the agent that serves it. */
public final class GinTrace implements AutoCloseable {

    private final ProcessTrace process;
    private final int index;
    private final long base;
    private final long queues;
    private final long[] kinds = new long[GinFields.Kind.values().length];
    private boolean closed;

    GinTrace(ProcessTrace process, int index, long base) {
        this.process = process;
        this.index = index;
        this.base = base;
        this.queues = base + TraceLayout.RECORD_BYTES;
    }

    /** A descriptor's part was taken from a queue. */
    public void taken(GinFields.Kind kind) {
        int number = kind.ordinal();
        TraceMemory.set(base + GinFields.KINDS_OFFSET + (long) number * Long.BYTES, ++kinds[number]);
    }

    /** How far a peer's queue was taken and completed, and the bytes of its payloads so far. */
    public void queue(int peer, long taken, long completed, long bytes, long now) {
        if (peer < GinFields.QUEUES) {
            long at = queues + (long) peer * QUEUE_BYTES;
            TraceMemory.set(at + GinFields.QUEUE_TAKEN_OFFSET, taken);
            TraceMemory.set(at + GinFields.QUEUE_COMPLETED_OFFSET, completed);
            TraceMemory.set(at + GinFields.QUEUE_PAYLOAD_OFFSET, bytes);
            TraceMemory.set(at + GinFields.QUEUE_LAST_CHANGE_OFFSET, now);
        }
    }

    /** The context is destroyed. May be called twice. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            process.close(index);
        }
    }
}
