package org.millrace.trace;

import static org.millrace.trace.TraceLayout.AGENT_BUSY_OFFSET;
import static org.millrace.trace.TraceLayout.AGENT_CLOCK_OFFSET;
import static org.millrace.trace.TraceLayout.AGENT_PASSES_OFFSET;

import java.util.Arrays;

/**
 * An agent that serves connections: its passes, and what is to be stored of its connections. Used by the agent's
 * thread.
 *
 * <p>
 * To read the clock and to store costs as much as a small step. So what connections did is stored by the first pass in
 * which there was nothing else to do, and while data flows after {@value #BUDGET} bytes, where a pass in which
 * something was done counts as much as {@value #PASS_BYTES}: then a reader sees what was some hundred microseconds ago,
 * and what is stored for it has left the core's cache only where so much data has passed through it anyway.
 */
public final class AgentTrace implements AutoCloseable {

    static final int BUDGET = 1 << 20;
    static final int PASS_BYTES = 4 << 10;
    /** Passes between two looks of a reader that find other numbers; a power of two. */
    private static final int PUBLISHED = 64;

    private final ProcessTrace process;
    /** 0 if nobody reads what it does. */
    private final long base;
    private final int number;
    /** What may still be moved before all is stored. */
    private long budget = BUDGET;
    /** Connections of which something is not stored yet; made longer when they are more than ever. */
    private ConnectionTrace[] changed = new ConnectionTrace[16];
    private int changes;
    private int thread;
    private long passes;
    private long busy;
    private boolean closed;

    AgentTrace(ProcessTrace process, long base, int number) {
        this.process = process;
        this.base = base;
        this.number = number;
    }

    /** Its number among those of the process; -1 if there are too many. */
    public int number() {
        return number;
    }

    /** Something happened on a connection of which all was stored. */
    void changed(ConnectionTrace connection) {
        if (changes == changed.length) {
            changed = Arrays.copyOf(changed, 2 * changes);
        }
        changed[changes++] = connection;
    }

    void moved(long bytes) {
        budget -= bytes;
    }

    public void passed(int work) {
        if (work > 0) {
            busy++;
            budget -= PASS_BYTES;
        } else {
            budget = -1;
        }
        if (budget < 0 && changes > 0) {
            store();
        }
        if ((++passes & PUBLISHED - 1) == 1) {
            publish();
        }
    }

    private void store() {
        budget = BUDGET;
        long now = System.nanoTime();
        for (int i = 0; i < changes; i++) {
            changed[i].storeAll(now);
        }
        changes = 0;
    }

    private void publish() {
        if (base == 0) {
            return;
        }
        if (thread == 0) {
            thread = ProcessTrace.ThreadNumber.current();
            TraceMemory.set(base + TraceLayout.AGENT_THREAD_OFFSET, thread);
        }
        TraceMemory.set(base + AGENT_PASSES_OFFSET, passes);
        TraceMemory.set(base + AGENT_BUSY_OFFSET, busy);
        TraceMemory.set(base + AGENT_CLOCK_OFFSET, System.nanoTime());
    }

    /** The agent has ended. May be called twice, by any thread. */
    @Override
    public void close() {
        synchronized (process) {
            if (!closed) {
                closed = true;
                process.closeAgent(number);
            }
        }
    }
}
