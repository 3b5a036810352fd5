package org.millrace.trace;

import static org.millrace.trace.TraceLayout.GinFields.QUEUE_BYTES;

import org.millrace.trace.TraceLayout.GinFields;

/**
 * What the kernels of a GIN context asked for. It is looked at ten times a second ({@link ProcessTrace#watch}): what
 * carries out descriptors does nothing for it.
 */
public final class GinTrace implements AutoCloseable {

    private final ProcessTrace process;
    private final int index;
    private final long base;
    private final int context;
    private boolean closed;

    GinTrace(ProcessTrace process, int index, long base, int context) {
        this.process = process;
        this.index = index;
        this.base = base;
        this.context = context;
    }

    /** How many descriptors of a kind were carried out. */
    public synchronized void served(GinFields.Kind kind, long count) {
        if (closed) {
            return; // the block may be another's
        }
        long at = base + GinFields.KINDS_OFFSET + (long) kind.ordinal() * Long.BYTES;
        long before = TraceMemory.get(at);
        if (count != before) {
            TraceMemory.set(at, count);
            if (kind == GinFields.Kind.FLUSH && FlightEvents.wanted()) {
                FlightEvents.flush(context, count - before);
            }
        }
    }

    /** How far a peer's queue was taken, and completed, as unsigned numbers of 32 bits. */
    public synchronized void queue(int peer, int taken, int completed) {
        if (closed || peer >= GinFields.QUEUES) {
            return;
        }
        long at = base + TraceLayout.RECORD_BYTES + (long) peer * QUEUE_BYTES;
        long takenNow = Integer.toUnsignedLong(taken);
        long completedNow = Integer.toUnsignedLong(completed);
        if (TraceMemory.get(at + GinFields.QUEUE_TAKEN_OFFSET) != takenNow
                || TraceMemory.get(at + GinFields.QUEUE_COMPLETED_OFFSET) != completedNow) {
            TraceMemory.set(at + GinFields.QUEUE_TAKEN_OFFSET, takenNow);
            TraceMemory.set(at + GinFields.QUEUE_COMPLETED_OFFSET, completedNow);
            TraceMemory.set(at + GinFields.QUEUE_LAST_CHANGE_OFFSET, System.nanoTime());
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
